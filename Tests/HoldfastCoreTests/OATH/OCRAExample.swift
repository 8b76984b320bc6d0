import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// An OCRA computation whose inputs own their bytes.
struct OCRAExample {
  var suite: OCRASuite
  var key: [UInt8]
  var counter: UInt64?
  var question: OCRAQuestion
  var pin: String?
  var session: [UInt8]?
  var timeStep: UInt64?

  func code() throws -> String {
    var cryptography = OpenSSLCryptography()
    return try withInput { (input) throws(OCRAFault) in
      try OCRA.code(suite: suite, key: key.span, input: input, using: &cryptography).description
    }
  }

  func untruncated() throws -> String {
    var cryptography = OpenSSLCryptography()
    return try withInput { (input) throws(OCRAFault) in
      let code = try OCRA.untruncated(suite: suite, key: key.span, input: input, using: &cryptography)
      return hex(code.bytes)
    }
  }

  private func withInput(_ body: (borrowing OCRAInput) throws(OCRAFault) -> String) throws(OCRAFault) -> String {
    let pinBytes = Array((pin ?? "").utf8)
    let sessionBytes = session ?? []
    let input = OCRAInput(
      counter: counter, question: question, pin: pin == nil ? nil : pinBytes.span,
      session: session == nil ? nil : sessionBytes.span, timeStep: timeStep)
    return try body(input)
  }
}
