import HoldfastAuthenticator
import HoldfastCore
import HoldfastText

extension Failure {
  /// An answer could not be made from the inputs that were given.
  init(_ fault: OCRAFault) {
    switch fault {
    case .missingInput(let name):
      self.init(.usage, "the suite needs \(name.option)")
    case .unexpectedInput(let name):
      self.init(.usage, "the suite takes no \(name.text)", hint: "leave \(name.option) out")
    case .sessionTooLong:
      self.init(.usage, "--session has more bytes than the suite says")
    case .noTruncation:
      self.init(.fault, "the suite has no digits")
    case .cryptography:
      self.init(.fault, "libcrypto failed")
    }
  }

  /// A suite that is none.
  init(badSuite text: String) {
    let example = "a suite looks like OCRA-1:HOTP-SHA256-8:QH64-T1M (RFC 6287, section 6)"
    let isOtherwiseGood = OCRASuite(text.uppercased()) != nil
    self.init(
      .usage, isOtherwiseGood ? "--suite is not in capitals" : "--suite is not a suite of RFC 6287", hint: example)
  }

  /// A question that is not as the suite wants it.
  init(badQuestionFor suite: OCRASuite) {
    let characters =
      switch suite.questionFormat {
      case .alphanumeric: "printable ASCII characters"
      case .numeric: "decimal digits"
      case .hexadecimal: "hex digits"
      }
    self.init(
      .usage, "--question is not 1 to \(suite.questionLength) \(characters)",
      hint: "a mutual question is two of them, at most \(2 * suite.questionLength) characters")
  }

  /// A secret in base32 that is not.
  init(_ fault: Base32Fault, in name: String) {
    let reason =
      switch fault {
      case .character: "it has other characters than A to Z, 2 to 7 and single spaces or dashes between them"
      case .length: "it is cut off, or has a character too many"
      case .padding: "its padding does not fill eight characters"
      case .strayBits: "its last character stands for more bits than there is room for"
      }
    self.init(.malformed, "\(name) is not base32: \(reason)", hint: "--format hex or --format raw?")
  }
}

extension OCRAInputName {
  fileprivate var option: String {
    switch self {
    case .counter: "--counter"
    case .pin: "--pin or --pin-file"
    case .session: "--session"
    case .time: "--time"
    }
  }

  fileprivate var text: String {
    switch self {
    case .counter: "counter"
    case .pin: "PIN"
    case .session: "session information"
    case .time: "time"
    }
  }
}
