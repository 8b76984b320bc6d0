/// An OCRA suite: the hash, the length and the inputs of a code, such as `OCRA-1:HOTP-SHA256-8:QH64-T1M`.
///
/// Source: RFC 6287 §6.
public struct OCRASuite: Sendable, Equatable {
  /// The format of a question. Source: RFC 6287 §5.1 and §6.3.
  public enum QuestionFormat: Sendable, Equatable {
    /// `A`: printable ASCII.
    case alphanumeric
    /// `N`: decimal digits.
    case numeric
    /// `H`: hexadecimal digits.
    case hexadecimal
  }

  /// The hash function of the HMAC.
  public let hash: OATHHash
  /// The length of the code; nil for the whole HMAC (`-0`).
  public let length: CodeLength?
  /// Whether a counter, `C`, is part of the code.
  public let hasCounter: Bool
  /// The format of the question, `Q`.
  public let questionFormat: QuestionFormat
  private let question: UInt8
  /// The hash function for the PIN, `P`; nil for a suite without a PIN.
  public let pinHash: OATHHash?
  /// The bytes of the session information; 0 for a suite without it.
  private let session: UInt16
  private let timeStep: OCRATimeStep?

  /// The suite of seals, unless the owner chooses another: `OCRA-1:HOTP-SHA256-8:QH64-T1M`.
  package static var usualSeal: OCRASuite {
    OCRASuite(.sha256, .eight, question: 64, OCRATimeStep(count: 1, unit: .minutes))
  }

  /// The suite of host codes, over two challenges of 16 hexadecimal digits: `OCRA-1:HOTP-SHA256-8:QH16`.
  ///
  /// Source: RFC 6287 §7.2.
  public static var host: OCRASuite { OCRASuite(.sha256, .eight, question: 16, nil) }

  private init(_ hash: OATHHash, _ length: CodeLength, question: UInt8, _ timeStep: OCRATimeStep?) {
    (self.hash, self.length, self.question, self.timeStep) = (hash, length, question, timeStep)
    (hasCounter, questionFormat, pinHash, session) = (false, .hexadecimal, nil, 0)
  }

  /// Reads a suite exactly as RFC 6287 §6 writes it; nil for any other text.
  public init?(_ bytes: Span<UInt8>) {
    guard bytes.count <= Self.longestText else { return nil }
    var reader = SuiteReader(bytes)
    guard reader.skip("OCRA-1:HOTP-"), let hash = reader.hash(), reader.skip("-"), let digits = reader.number(1...2),
      digits == 0 || CodeLength(digits) != nil, reader.skip(":")
    else { return nil }
    self.hash = hash
    length = CodeLength(digits)
    hasCounter = reader.skip("C-")
    guard reader.skip("Q"), let format = reader.questionFormat(), let questionLength = reader.number(2...2),
      (4...64).contains(questionLength)
    else { return nil }
    questionFormat = format
    question = UInt8(questionLength)
    var pinHash: OATHHash?
    var sessionByteCount = 0
    var timeStep: OCRATimeStep?
    if reader.skip("-P") {
      guard let hash = reader.hash() else { return nil }
      pinHash = hash
    }
    if reader.skip("-S") {
      guard let count = reader.number(3...3), (1...512).contains(count) else { return nil }
      sessionByteCount = count
    }
    if reader.skip("-T") {
      guard let step = reader.timeStep() else { return nil }
      timeStep = step
    }
    self.pinHash = pinHash
    session = UInt16(sessionByteCount)
    self.timeStep = timeStep
    guard reader.isAtEnd else { return nil }
  }

  /// The most characters of one question, 4 to 64.
  public var questionLength: Int { Int(question) }
  /// The number of bytes of the session information, `S`, 1 to 512; nil for a suite without it.
  public var sessionByteCount: Int? { session == 0 ? nil : Int(session) }
  /// The length of a time step, `T`, in seconds; nil for a suite without the time.
  public var timeStepSeconds: UInt64? { timeStep?.seconds }
}

extension OCRASuite {
  /// The length of the longest suite, in characters.
  private static var longestText: Int { 64 }

  /// The suite's text, at most 64 characters, which is part of the authenticated bytes. There is one way to write each
  /// suite.
  public var text: BoundedText<64> {
    var text = ByteBuffer<64>()
    do throws(EncodingFault) { try write(into: &text) } catch { return BoundedText() }
    return BoundedText(text.bytes) ?? BoundedText()
  }

  private func write(into text: inout ByteBuffer<64>) throws(EncodingFault) {
    try text.append("OCRA-1:HOTP-")
    try text.append(hash.ocraName)
    try text.append("-")
    try text.append(decimal: length?.digits ?? 0, digits: 1)
    try text.append(hasCounter ? ":C-Q" : ":Q")
    try text.append(questionFormat.letter)
    try text.append(decimal: questionLength, digits: 2)
    if let pinHash {
      try text.append("-P")
      try text.append(pinHash.ocraName)
    }
    if let sessionByteCount {
      try text.append("-S")
      try text.append(decimal: sessionByteCount, digits: 3)
    }
    if let timeStep {
      try text.append("-T")
      try text.append(decimal: Int(timeStep.count), digits: 1)
      try text.append(timeStep.unit.letter)
    }
  }
}

/// A time step as a suite writes it: a count and a unit. Source: RFC 6287 §6.3.
struct OCRATimeStep: Sendable, Equatable {
  enum Unit: Sendable, Equatable {
    case seconds, minutes, hours

    var letter: UInt8 {
      switch self {
      case .seconds: 0x53
      case .minutes: 0x4d
      case .hours: 0x48
      }
    }
  }

  let count: UInt8
  let unit: Unit

  var seconds: UInt64 {
    switch unit {
    case .seconds: UInt64(count)
    case .minutes: UInt64(count) * 60
    case .hours: UInt64(count) * 3600
    }
  }
}

extension OCRASuite.QuestionFormat {
  fileprivate var letter: UInt8 {
    switch self {
    case .alphanumeric: 0x41
    case .numeric: 0x4e
    case .hexadecimal: 0x48
    }
  }
}

extension OATHHash {
  fileprivate var ocraName: StaticString {
    switch self {
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha512: "SHA512"
    }
  }
}

extension ByteBuffer {
  /// Appends a decimal number, with leading zeros up to `digits` digits.
  fileprivate mutating func append(decimal number: Int, digits: Int) throws(EncodingFault) {
    if number >= 10 || digits > 1 { try append(decimal: number / 10, digits: digits - 1) }
    try append(0x30 + UInt8(number % 10))
  }
}

/// A reader of a suite's text.
private struct SuiteReader: ~Escapable {
  private let bytes: Span<UInt8>
  private var position = 0

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  var isAtEnd: Bool { position == bytes.count }

  /// Skips `text` if it is next, and returns whether it was.
  mutating func skip(_ text: StaticString) -> Bool {
    let end = position + text.utf8CodeUnitCount
    guard end <= bytes.count, bytes.extracting(position..<end).elementsEqual(text) else { return false }
    position = end
    return true
  }

  /// Reads a decimal number whose digit count is in `lengths`. A number of more than one digit may begin with 0 only if
  /// its length is fixed.
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

  /// Reads `[1-59]S`, `[1-59]M` or `[1-48]H`.
  mutating func timeStep() -> OCRATimeStep? {
    guard let count = number(1...2), count >= 1 else { return nil }
    let unit: OCRATimeStep.Unit
    if skip("S") {
      unit = .seconds
    } else if skip("M") {
      unit = .minutes
    } else if skip("H") {
      unit = .hours
    } else {
      return nil
    }
    guard count <= (unit == .hours ? 48 : 59) else { return nil }
    return OCRATimeStep(count: UInt8(count), unit: unit)
  }
}

#if !hasFeature(Embedded)
extension OCRASuite {
  /// Reads a suite; nil for any other text.
  public init?(_ text: String) {
    self.init(Array(text.utf8).span)
  }
}
#endif
