/// One-time passwords, answers and signatures from a question.
///
/// Source: RFC 6287 §5.
public enum OCRA {
  /// The code of `input` under `key`, of any length.
  ///
  /// Throws `missingInput`, `unexpectedInput` and `sessionTooLong` where `input` is not what `suite` names, `noTruncation`
  /// for a suite of no digits, `cryptography` when that fails. Timing: depends on suite and byte counts alone.
  public static func code<Crypto: Cryptography & ~Copyable>(
    suite: OCRASuite, key: Span<UInt8>, input: borrowing OCRAInput, using cryptography: inout Crypto
  ) throws(OCRAFault) -> BoundedText<16> {
    guard let length = suite.length else { throw .noTruncation }
    let whole = try untruncated(suite: suite, key: key, input: input, using: &cryptography)
    return Truncation.code(whole.bytes, length)
  }

  /// The whole HMAC of `input` under `key`, 20, 32 or 64 bytes: the answer where the suite ends in `-0`, and what a code is
  /// taken from where it does not.
  ///
  /// Source: RFC 6287 §5.2. Throws and timing as ``code(suite:key:input:using:)``, but for `noTruncation`.
  public static func untruncated<Crypto: Cryptography & ~Copyable>(
    suite: OCRASuite, key: Span<UInt8>, input: borrowing OCRAInput, using cryptography: inout Crypto
  ) throws(OCRAFault) -> ByteBuffer<64> {
    try check(input, suite)
    do throws(CryptographyFailure) {
      var pinDigest = ByteBuffer<64>()
      if let pin = input.pin, let hash = suite.pinHash { pinDigest = try hash.digest(pin, using: &cryptography) }
      var whole = ByteBuffer<64>(zeros: suite.hash.byteCount)
      var bytes = whole.mutableBytes
      switch suite.hash {
      case .sha1:
        var mac = try cryptography.hmacSHA1(key: key)
        append(suite, input, pinDigest: pinDigest.bytes, to: &mac)
        try mac.finish(into: &bytes)
      case .sha256:
        var mac = try cryptography.hmacSHA256(key: key)
        append(suite, input, pinDigest: pinDigest.bytes, to: &mac)
        try mac.finish(into: &bytes)
      case .sha512:
        var mac = try cryptography.hmacSHA512(key: key)
        append(suite, input, pinDigest: pinDigest.bytes, to: &mac)
        try mac.finish(into: &bytes)
      }
      return whole
    } catch {
      throw .cryptography
    }
  }

  /// Suite, zero, C, Q, P, S and T, as far as there are.
  ///
  /// Source: RFC 6287 §5.1.
  private static func append<MAC: StreamingDigest>(
    _ suite: OCRASuite, _ input: borrowing OCRAInput, pinDigest: Span<UInt8>, to mac: inout MAC
  ) {
    let text = suite.text
    mac.append(text.bytes)
    mac.append(0)
    if let counter = input.counter { mac.append(bigEndian: counter) }
    mac.append(input.question)
    mac.append(pinDigest)
    if let session = input.session, let byteCount = suite.sessionByteCount {
      for _ in session.count..<byteCount { mac.append(0) }
      mac.append(session)
    }
    if let timeStep = input.timeStep { mac.append(bigEndian: timeStep) }
  }

  private static func check(_ input: borrowing OCRAInput, _ suite: OCRASuite) throws(OCRAFault) {
    try check(.counter, given: input.counter != nil, named: suite.hasCounter)
    try check(.pin, given: input.pin != nil, named: suite.pinHash != nil)
    try check(.session, given: input.session != nil, named: suite.sessionByteCount != nil)
    try check(.time, given: input.timeStep != nil, named: suite.timeStepSeconds != nil)
    if let session = input.session, let byteCount = suite.sessionByteCount, session.count > byteCount {
      throw .sessionTooLong
    }
  }

  private static func check(_ name: OCRAInputName, given: Bool, named: Bool) throws(OCRAFault) {
    guard given || !named else { throw .missingInput(name) }
    guard named || !given else { throw .unexpectedInput(name) }
  }
}

/// Why there is no OCRA code.
public enum OCRAFault: Error, Equatable {
  /// The suite names an input that was not given.
  case missingInput(OCRAInputName)
  /// An input was given that the suite does not name.
  case unexpectedInput(OCRAInputName)
  /// The session information has more bytes than the suite says.
  case sessionTooLong
  /// The suite ends in `-0`: it has the whole HMAC in place of a code.
  case noTruncation
  /// The cryptography failed.
  case cryptography
}

/// The inputs that a suite may name, besides the question.
public enum OCRAInputName: Sendable {
  case counter, pin, session, time
}

/// What an OCRA code is made from, apart from its suite and its key. Which of these there must be, the suite says.
///
/// Source: RFC 6287 §5.1.
public struct OCRAInput: ~Escapable {
  /// `C`.
  public let counter: UInt64?
  /// `Q`: 128 bytes.
  public let question: Span<UInt8>
  /// `P`: the PIN as it is typed, hashed when the code is made; any number of bytes.
  public let pin: Span<UInt8>?
  /// `S`: at most as many bytes as the suite says; shorter ones get zeros in front, as the RFC's reference does.
  public let session: Span<UInt8>?
  /// `T`: the number of time steps since 1970, see ``TOTP/timeStep(at:periodSeconds:)``.
  public let timeStep: UInt64?

  @_lifetime(borrow question, copy pin, copy session)
  public init(
    counter: UInt64? = nil, question: borrowing OCRAQuestion, pin: Span<UInt8>? = nil, session: Span<UInt8>? = nil,
    timeStep: UInt64? = nil
  ) {
    self.init(counter: counter, questionBytes: question.bytes.bytes, pin: pin, session: session, timeStep: timeStep)
  }

  @_lifetime(copy questionBytes, copy pin, copy session)
  init(
    counter: UInt64?, questionBytes: Span<UInt8>, pin: Span<UInt8>? = nil, session: Span<UInt8>? = nil,
    timeStep: UInt64?
  ) {
    self.counter = counter
    question = questionBytes
    self.pin = pin
    self.session = session
    self.timeStep = timeStep
  }
}

/// The question of an OCRA code, as the 128 bytes that are authenticated.
///
/// Source: RFC 6287 §5.1, §6.3 and appendix A.
public struct OCRAQuestion: Sendable, Equatable {
  /// Text as its bytes, a decimal number as a hexadecimal one, hexadecimal digits as they are: written from the left,
  /// two digits a byte, with zeros behind.
  public let bytes: FixedBytes<128>

  /// The most characters of a question.
  public static let maximumLength = 128

  /// Reads a question as `suite` wants it written; nil for characters that it has not, for none, and for more than twice
  /// ``OCRASuite/questionLength``: a mutual question is made of two (RFC 6287 §7.2).
  public init?(_ text: Span<UInt8>, for suite: OCRASuite) {
    guard (1...2 * suite.questionLength).contains(text.count) else { return nil }
    let bytes: FixedBytes<128>? =
      switch suite.questionFormat {
      case .alphanumeric: Self.alphanumeric(text)
      case .numeric: Self.numeric(text)
      case .hexadecimal: Self.hexadecimal(text)
      }
    guard let bytes else { return nil }
    self.bytes = bytes
  }

  private static func alphanumeric(_ text: Span<UInt8>) -> FixedBytes<128>? {
    var bytes = FixedBytes<128>()
    for index in text.indices {
      guard (0x20...0x7e).contains(text[index]) else { return nil }
      bytes[index] = text[index]
    }
    return bytes
  }

  private static func hexadecimal(_ text: Span<UInt8>) -> FixedBytes<128>? {
    var bytes = FixedBytes<128>()
    for index in text.indices {
      guard let digit = hexadecimalDigit(text[index]) else { return nil }
      bytes[index / 2] |= index % 2 == 0 ? digit << 4 : digit
    }
    return bytes
  }

  /// The number's hexadecimal digits without zeros in front, as the reference's `BigInteger` writes them; zero is one digit.
  private static func numeric(_ text: Span<UInt8>) -> FixedBytes<128>? {
    // 128 decimal digits are 426 bits: 14 words, least significant first.
    var words = InlineArray<14, UInt32>(repeating: 0)
    for index in text.indices {
      guard (0x30...0x39).contains(text[index]) else { return nil }
      var carry = UInt64(text[index] - 0x30)
      for place in words.indices {
        carry += UInt64(words[place]) * 10
        words[place] = UInt32(truncatingIfNeeded: carry)
        carry >>= 32
      }
    }
    var bytes = FixedBytes<128>()
    var written = 0
    for place in stride(from: 14 * 8 - 1, through: 0, by: -1) {
      let digit = UInt8(words[place / 8] >> UInt32(place % 8 * 4) & 0x0f)
      guard written > 0 || digit != 0 else { continue }
      bytes[written / 2] |= written % 2 == 0 ? digit << 4 : digit
      written += 1
    }
    return bytes
  }

  private static func hexadecimalDigit(_ character: UInt8) -> UInt8? {
    switch character {
    case 0x30...0x39: character - 0x30
    case 0x41...0x46: character - 0x41 + 10
    case 0x61...0x66: character - 0x61 + 10
    default: nil
    }
  }
}

#if !hasFeature(Embedded)
  extension OCRAQuestion {
    /// Reads a question as `suite` wants it written; nil for any other.
    public init?(_ text: String, for suite: OCRASuite) {
      self.init(Array(text.utf8).span, for: suite)
    }
  }
#endif

/// What a seal is made over: `SHA-256("holdfast/1 seal" ‖ 0x00 ‖ CBOR [command, [parameters]])` as 64 hexadecimal digits.
///
/// Source: docs/protocol.md, Codes; an OCRA question (RFC 6287 §5.1).
///
/// - Parameters:
///   - parameterCount: at most 8; none gives an empty array.
///   - parameter: the one at an index below `parameterCount`.
/// - Returns: ASCII, lower case; a suite reads them as a number, so that their case does not matter.
public func sealQuestion<Crypto: Cryptography & ~Copyable>(
  command: BoundedText<32>, parameterCount: Int, parameter: (Int) -> BoundedText<64>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> FixedBytes<64> {
  let digest = try commandDigest(
    command: command, parameterCount: parameterCount, parameter: parameter, using: &cryptography)
  var question = ByteBuffer<64>()
  try? question.appendHexadecimal(digest.bytes)
  return FixedBytes<64>(question.bytes)!
}

/// Identifies a command and its parameters: `SHA-256("holdfast/1 seal" ‖ 0x00 ‖ CBOR [command, [parameters]])`, 32 bytes.
///
/// Seals cover it, and a device tells by it whether a repeated request is the same one. The parameters are as for
/// ``sealQuestion(command:parameterCount:parameter:using:)``.
@inline(never)
public func commandDigest<Crypto: Cryptography & ~Copyable>(
  command: BoundedText<32>, parameterCount: Int, parameter: (Int) -> BoundedText<64>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> Digest {
  var hash = try cryptography.sha256()
  hash.append(domain: "holdfast/1 seal")
  hash.appendCBOR(array: 2)
  hash.appendCBOR(text: command.bytes)
  hash.appendCBOR(array: parameterCount)
  for index in 0..<parameterCount {
    let text = parameter(index)
    hash.appendCBOR(text: text.bytes)
  }
  return try hash.finish()
}
