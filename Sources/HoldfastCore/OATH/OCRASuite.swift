/// Which hash, length and data input an OCRA code has: `OCRA-1:HOTP-SHA256-8:QH64-T1M`.
///
/// Source: RFC 6287 §6.
public struct OCRASuite: Sendable, Equatable {
  /// How a question is written. Source: RFC 6287 §5.1 and §6.3.
  public enum QuestionFormat: Sendable, Equatable {
    /// `A`: printable ASCII.
    case alphanumeric
    /// `N`: decimal digits.
    case numeric
    /// `H`: hexadecimal digits.
    case hexadecimal
  }

  /// The suite as it was written, which is part of what is authenticated.
  public let text: BoundedText<64>
  public let hash: OATHHash
  /// Nil for the whole HMAC (`-0`).
  public let length: CodeLength?
  /// `C`: whether a counter is part of it.
  public let hasCounter: Bool
  public let questionFormat: QuestionFormat
  /// The most characters of one question, 4 to 64.
  public let questionLength: Int
  /// `P`: the hash of the PIN; nil without one.
  public let pinHash: OATHHash?
  /// `S`: the bytes of the session information, 1 to 512; nil without one.
  public let sessionByteCount: Int?
  /// `T`: the seconds of a time step; nil without one.
  public let timeStepSeconds: UInt64?

  /// What seals are made with unless their owner says otherwise.
  public static let usualSeal = OCRASuite(trusted: "OCRA-1:HOTP-SHA256-8:QH64-T1M")

  /// Reads a suite, letter by letter as RFC 6287 §6 writes it; nil for anything else.
  public init?(_ bytes: Span<UInt8>) {
    guard let text = BoundedText<64>(bytes) else { return nil }
    var reader = SuiteReader(bytes)
    guard reader.skip("OCRA-1:HOTP-"), let hash = reader.hash(), reader.skip("-"), let digits = reader.number(1...2),
      digits == 0 || CodeLength(digits) != nil, reader.skip(":")
    else { return nil }
    self.text = text
    self.hash = hash
    length = CodeLength(digits)
    hasCounter = reader.skip("C-")
    guard reader.skip("Q"), let format = reader.questionFormat(), let questionLength = reader.number(2...2),
      (4...64).contains(questionLength)
    else { return nil }
    questionFormat = format
    self.questionLength = questionLength
    var pinHash: OATHHash?
    var sessionByteCount: Int?
    var timeStepSeconds: UInt64?
    if reader.skip("-P") {
      guard let hash = reader.hash() else { return nil }
      pinHash = hash
    }
    if reader.skip("-S") {
      guard let count = reader.number(3...3), (1...512).contains(count) else { return nil }
      sessionByteCount = count
    }
    if reader.skip("-T") {
      guard let seconds = reader.timeStepSeconds() else { return nil }
      timeStepSeconds = seconds
    }
    self.pinHash = pinHash
    self.sessionByteCount = sessionByteCount
    self.timeStepSeconds = timeStepSeconds
    guard reader.isAtEnd else { return nil }
  }

  private init(trusted text: StaticString) {
    self.init(BoundedText<64>(text).bytes)!
  }
}

extension OCRASuite {
  public static func == (left: OCRASuite, right: OCRASuite) -> Bool {
    left.text == right.text
  }
}

private struct SuiteReader: ~Escapable {
  private let bytes: Span<UInt8>
  private var position = 0

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  var isAtEnd: Bool { position == bytes.count }

  /// Passes over `text` if it is next; says whether it was.
  mutating func skip(_ text: StaticString) -> Bool {
    let end = position + text.utf8CodeUnitCount
    guard end <= bytes.count, bytes.extracting(position..<end).elementsEqual(text) else { return false }
    position = end
    return true
  }

  /// A decimal number of so many digits; one of more than one begins with 0 only where its length is fixed.
  mutating func number(_ lengths: ClosedRange<Int>) -> Int? {
    let start = position
    var value = 0
    while position < bytes.count, position - start < lengths.upperBound, (0x30...0x39).contains(bytes[position]) {
      value = value * 10 + Int(bytes[position] - 0x30)
      position += 1
    }
    let count = position - start
    guard lengths.contains(count) else { return nil }
    guard lengths.lowerBound == lengths.upperBound || count == 1 || bytes[start] != 0x30 else { return nil }
    return value
  }

  mutating func hash() -> OATHHash? {
    if skip("SHA1") { return .sha1 }
    if skip("SHA256") { return .sha256 }
    if skip("SHA512") { return .sha512 }
    return nil
  }

  mutating func questionFormat() -> OCRASuite.QuestionFormat? {
    if skip("A") { return .alphanumeric }
    if skip("N") { return .numeric }
    if skip("H") { return .hexadecimal }
    return nil
  }

  /// `[1-59]S`, `[1-59]M` or `[1-48]H`.
  mutating func timeStepSeconds() -> UInt64? {
    guard let count = number(1...2), count >= 1 else { return nil }
    if skip("S") { return count <= 59 ? UInt64(count) : nil }
    if skip("M") { return count <= 59 ? UInt64(count) * 60 : nil }
    if skip("H") { return count <= 48 ? UInt64(count) * 3600 : nil }
    return nil
  }
}

#if !hasFeature(Embedded)
  extension OCRASuite {
    /// Reads a suite; nil for anything else.
    public init?(_ text: String) {
      self.init(Array(text.utf8).span)
    }
  }
#endif
