import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The vectors `HOTP` and `TOTP`: the code for a counter or a time.
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

/// The moving factor of a code.
protocol CodeMoment {
  /// Returns the counter that the HMAC covers; nil for a period that is not permitted.
  static func counter(of test: VectorTest) throws(VectorFault) -> UInt64?
}

/// A moving factor from the member `counter`, eight bytes.
enum CounterMoment: CodeMoment {
  static func counter(of test: VectorTest) throws(VectorFault) -> UInt64? {
    try test.node.member("counter").bigEndian()
  }
}

/// A moving factor from the members `time`, in Unix seconds, and `period`, in seconds.
enum TimeMoment: CodeMoment {
  static func counter(of test: VectorTest) throws(VectorFault) -> UInt64? {
    let time = try test.node.member("time").number()
    let period = try test.node.member("period").number()
    guard (1...CodeMethod.maximumPeriodSeconds).contains(period) else { return nil }
    return TOTP.timeStep(at: time, periodSeconds: period)
  }
}

extension OATHHash {
  /// Creates the hash with a name; nil for an unknown name.
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
  /// Returns a number of eight bytes, most significant first.
  func bigEndian() throws(VectorFault) -> UInt64 {
    let bytes: FixedBytes<8> = try fixed()
    var number: UInt64 = 0
    for index in 0..<8 { number = number << 8 | UInt64(bytes[index]) }
    return number
  }
}

/// The vectors `OCRA`: the code that a suite computes from its inputs.
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

/// The vectors `OCRASuite`: text that is or is not a suite.
///
/// Source: RFC 6287 §6.
struct OCRASuiteVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    OCRASuite(try test.node.member("suite").text()) == nil ? .refused("suite") : .accepted
  }
}
