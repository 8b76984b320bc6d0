import HoldfastCore
import HoldfastOpenSSL

/// `HOTP` and `TOTP`: the code of a counter or of a time.
///
/// Source: RFC 4226, RFC 6238.
struct CodeVectors<Moment: CodeMoment>: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let secret = try test.bytes("secret")
    let algorithm = try test.node.member("algorithm").text()
    let digits = try test.node.member("digits").number()
    let code = try test.node.member("code").text()
    let moment = try Moment.counter(of: test)
    guard !secret.isEmpty else { return .refused("no secret") }
    guard let hash = OATHHash(vectorName: algorithm) else { return .refused("algorithm \(algorithm)") }
    let length = Int(exactly: digits).flatMap { CodeLength($0) }
    guard digits == 0 || length != nil else { return .refused("\(digits) digits") }
    guard let counter = moment else { return .refused("period") }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let made: String
      if let length {
        made = try HOTP.code(counter: counter, key: secret.span, hash: hash, length: length, using: &cryptography)
          .description
      } else {
        made = hexadecimal(try HOTP.untruncated(counter: counter, key: secret.span, hash: hash, using: &cryptography))
      }
      return made == code ? .accepted : .refused("code differs")
    } catch { return .refused("no code") }
  }
}

/// What a code is of.
protocol CodeMoment {
  /// The counter that goes into the HMAC; nil for a period that there is not.
  static func counter(of test: VectorTest) throws(VectorFault) -> UInt64?
}

/// `counter`, eight bytes.
enum CounterMoment: CodeMoment {
  static func counter(of test: VectorTest) throws(VectorFault) -> UInt64? {
    try test.node.member("counter").bigEndian()
  }
}

/// `time` in Unix seconds and `period` in seconds.
enum TimeMoment: CodeMoment {
  static func counter(of test: VectorTest) throws(VectorFault) -> UInt64? {
    let time = try test.node.member("time").number()
    let period = try test.node.member("period").number()
    guard (1...CodeMethod.maximumPeriodSeconds).contains(period) else { return nil }
    return TOTP.timeStep(at: time, periodSeconds: period)
  }
}

extension OATHHash {
  /// The hash of that name; nil for any other.
  init?(vectorName name: String) {
    switch name {
    case "SHA1": self = .sha1
    case "SHA256": self = .sha256
    case "SHA512": self = .sha512
    default: return nil
    }
  }
}

extension VectorNode {
  /// A number of eight bytes, most significant first.
  func bigEndian() throws(VectorFault) -> UInt64 {
    let bytes: FixedBytes<8> = try fixed()
    var number: UInt64 = 0
    for index in 0..<8 { number = number << 8 | UInt64(bytes[index]) }
    return number
  }
}

/// A whole HMAC as lower-case hexadecimal digits.
func hexadecimal(_ code: borrowing ByteBuffer<64>) -> String {
  var text = ""
  for index in 0..<code.count {
    let digits = String(code.bytes[index], radix: 16)
    text += digits.count == 1 ? "0" + digits : digits
  }
  return text
}

/// `OCRA`: the code that a suite makes of its inputs.
///
/// Source: RFC 6287.
struct OCRAVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let suiteText = try test.node.member("suite").text()
    let questionText = try test.node.member("question").text()
    let secret = try test.bytes("secret")
    let code = try test.node.member("code").text()
    let counter = try test.node.optional("counter")?.bigEndian()
    let pin = try test.node.optional("pin")?.bytes()
    let session = try test.node.optional("session")?.bytes()
    let timeStep = try test.node.optional("timeStep")?.bigEndian()
    guard !secret.isEmpty else { return .refused("no secret") }
    guard let suite = OCRASuite(suiteText) else { return .refused("suite") }
    guard let question = OCRAQuestion(questionText, for: suite) else { return .refused("question") }
    let input = OCRAInput(
      counter: counter, question: question, pin: pin?.span, session: session?.span, timeStep: timeStep)
    var cryptography = OpenSSLCryptography()
    do throws(OCRAFault) {
      let made: String
      if suite.length == nil {
        made = hexadecimal(
          try OCRA.untruncated(suite: suite, key: secret.span, input: input, using: &cryptography))
      } else {
        made = try OCRA.code(suite: suite, key: secret.span, input: input, using: &cryptography).description
      }
      return made == code ? .accepted : .refused("code differs")
    } catch { return .refused("\(error)") }
  }
}

/// `OCRASuite`: whether text is a suite.
///
/// Source: RFC 6287 §6.
struct OCRASuiteVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    OCRASuite(try test.node.member("suite").text()) == nil ? .refused("suite") : .accepted
  }
}
