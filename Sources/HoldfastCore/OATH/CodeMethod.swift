/// The method by which the codes of an account are made: everything but the account's secret.
public enum CodeMethod: Sendable, Equatable {
  /// Codes from a counter. Source: RFC 4226.
  case hotp(OATHHash, CodeLength)
  /// Codes from the time, in steps of 1 to 86,400 seconds since 1970. Source: RFC 6238.
  case totp(OATHHash, CodeLength, periodSeconds: UInt64)
  /// Codes from a question. Source: RFC 6287.
  case ocra(OCRASuite)

  /// Whether a counter is part of each code.
  public var isCounted: Bool {
    switch self {
    case .hotp: true
    case .totp: false
    case .ocra(let suite): suite.hasCounter
    }
  }

  /// The length of a time step, in seconds; nil if the time is not part of a code.
  public var timeStepSeconds: UInt64? {
    switch self {
    case .hotp: nil
    case .totp(_, _, let periodSeconds): periodSeconds
    case .ocra(let suite): suite.timeStepSeconds
    }
  }

  /// The longest period, in seconds.
  public static let maximumPeriodSeconds: UInt64 = 86_400
}

extension CodeMethod {
  /// Writes `[1, hash, digits]`, `[2, hash, digits, period]` or `[3, suite]`.
  public func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    switch self {
    case .hotp(let hash, let length):
      try sink.appendCBOR(array: 3)
      try sink.appendCBOR(unsigned: 1)
      try sink.appendCBOR(unsigned: UInt64(hash.rawValue))
      try sink.appendCBOR(unsigned: UInt64(length.digits))
    case .totp(let hash, let length, let periodSeconds):
      try sink.appendCBOR(array: 4)
      try sink.appendCBOR(unsigned: 2)
      try sink.appendCBOR(unsigned: UInt64(hash.rawValue))
      try sink.appendCBOR(unsigned: UInt64(length.digits))
      try sink.appendCBOR(unsigned: periodSeconds)
    case .ocra(let suite):
      try sink.appendCBOR(array: 2)
      try sink.appendCBOR(unsigned: 3)
      try sink.appendCBOR(text: suite.text.bytes)
    }
  }

  /// Decodes a method that ``encode(into:)`` wrote.
  ///
  /// - Throws: `malformed`, or `unexpected` for anything but a method.
  public init(_ reader: inout CBORReader) throws(EncodingFault) {
    let count = try reader.arrayHead()
    switch (try reader.unsigned(), count) {
    case (1, 3):
      self = .hotp(try reader.hash(), try reader.codeLength())
    case (2, 4):
      let (hash, length) = (try reader.hash(), try reader.codeLength())
      let periodSeconds = try reader.unsigned()
      guard (1...Self.maximumPeriodSeconds).contains(periodSeconds) else { throw .unexpected }
      self = .totp(hash, length, periodSeconds: periodSeconds)
    case (3, 2):
      guard let suite = OCRASuite(try reader.textString()) else { throw .unexpected }
      self = .ocra(suite)
    default: throw .unexpected
    }
  }
}

extension CBORReader {
  fileprivate mutating func hash() throws(EncodingFault) -> OATHHash {
    guard let raw = UInt8(exactly: try unsigned()), let hash = OATHHash(rawValue: raw) else { throw .unexpected }
    return hash
  }

  fileprivate mutating func codeLength() throws(EncodingFault) -> CodeLength {
    guard let digits = Int(exactly: try unsigned()), let length = CodeLength(digits) else { throw .unexpected }
    return length
  }
}
