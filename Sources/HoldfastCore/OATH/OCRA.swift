/// One-time passwords, responses and signatures from a question.
///
/// Source: RFC 6287 §5.
public enum OCRA {
  /// Returns the code of `input` under `key`, which may have any length.
  ///
  /// Throws `missingInput`, `unexpectedInput` and `sessionTooLong` if `input` does not have the parts that `suite`
  /// names, `noTruncation` for a suite without digits, `cryptography` if that fails. Timing: depends only on the suite
  /// and on byte counts.
  public static func code<Crypto: Cryptography & ~Copyable>(
    suite: OCRASuite, key: Span<UInt8>, input: borrowing OCRAInput, using cryptography: inout Crypto
  ) throws(OCRAFault) -> BoundedText<16> {
    guard let length = suite.length else { throw .noTruncation }
    let whole = try untruncated(suite: suite, key: key, input: input, using: &cryptography)
    return Truncation.code(whole.bytes, length)
  }

  /// Returns the whole HMAC of `input` under `key`, 20, 32 or 64 bytes. It is the response if the suite's length is 0
  /// (`-0`); a code is taken from it if not.
  ///
  /// Source: RFC 6287 §5.2. Errors and timing are those of ``code(suite:key:input:using:)``, except for `noTruncation`.
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

  /// Appends the suite, a zero byte, and the parts of C, Q, P, S and T that are present, in this order.
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

/// The reason why there is no OCRA code.
public enum OCRAFault: Error, Equatable {
  /// The suite names an input that was not given.
  case missingInput(OCRAInputName)
  /// An input was given that the suite does not name.
  case unexpectedInput(OCRAInputName)
  /// The session information has more bytes than the suite says.
  case sessionTooLong
  /// The suite's length is 0 (`-0`): it gives the whole HMAC instead of a code.
  case noTruncation
  /// The cryptography failed.
  case cryptography
}

/// The inputs that a suite may name in addition to the question.
public enum OCRAInputName: Sendable {
  /// The inputs `C`, `P`, `S` and `T`.
  case counter, pin, session, time
}

/// The input of an OCRA code, in addition to its suite and its key. The suite determines which parts must be present.
///
/// Source: RFC 6287 §5.1.
public struct OCRAInput: ~Escapable {
  /// The counter, `C`.
  public let counter: UInt64?
  /// The question, `Q`, 128 bytes.
  public let question: Span<UInt8>
  /// The PIN, `P`, as it is typed; any number of bytes. It is hashed when the code is made.
  public let pin: Span<UInt8>?
  /// The session information, `S`, with at most the number of bytes that the suite names. A shorter one gets leading
  /// zeros, as in the RFC's reference implementation.
  public let session: Span<UInt8>?
  /// The number of time steps since 1970, `T`: see ``TOTP/timeStep(at:periodSeconds:)``.
  public let timeStep: UInt64?

  /// Creates the input of a code.
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
  /// The bytes: alphanumeric text as it is, a decimal number in hexadecimal digits, hexadecimal digits as they are. Two
  /// hexadecimal digits make a byte, from the left, and zeros follow.
  public let bytes: FixedBytes<128>

  /// Reads a question in the format of `suite`. Returns nil for characters outside that format, for an empty question,
  /// and for more than twice ``OCRASuite/questionLength`` characters: a mutual question consists of two (RFC 6287
  /// §7.2).
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
      guard let digit = hexadecimalValue(text[index]) else { return nil }
      bytes[index / 2] |= index % 2 == 0 ? digit << 4 : digit
    }
    return bytes
  }

  /// Returns the number's hexadecimal digits without leading zeros, as the reference's `BigInteger` writes them; zero
  /// is one digit.
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
}

#if !hasFeature(Embedded)
extension OCRAQuestion {
  /// Reads a question in the format of `suite`; nil for any other text.
  public init?(_ text: String, for suite: OCRASuite) {
    self.init(Array(text.utf8).span, for: suite)
  }

  /// Creates the question of a one-time password over a device's challenge, in the format of `suite`; nil for a suite whose
  /// question is too short.
  ///
  /// Source: docs/protocol.md, Codes.
  ///
  /// - Parameter challengeDigits: the 16 hexadecimal digits of the challenge, in lower case. A suite `QH` or `QA` of at least
  ///   16 takes them as they are, and a suite `QN` of at least 8 the last digits of the same number in decimal.
  package init?(challengeDigits: Span<UInt8>, for suite: OCRASuite) {
    guard challengeDigits.count == 16, suite.takesChallenge else { return nil }
    guard suite.questionFormat == .numeric else {
      self.init(challengeDigits, for: suite)
      return
    }
    var number: UInt64 = 0
    for index in challengeDigits.indices {
      guard let digit = hexadecimalValue(challengeDigits[index]) else { return nil }
      number = number << 4 | UInt64(digit)
    }
    self.init(String(String(number).suffix(suite.questionLength)), for: suite)
  }
}

extension OCRASuite {
  /// Whether the suite's question has room for a device's challenge.
  package var takesChallenge: Bool { questionLength >= (questionFormat == .numeric ? 8 : 16) }
}
#endif

/// Returns the question of a seal: `SHA-256("holdfast/1 seal" ‖ 0x00 ‖ CBOR [command, [parameters]])` as 64 hexadecimal
/// digits.
///
/// Source: docs/protocol.md, Codes; an OCRA question (RFC 6287 §5.1).
///
/// - Parameters:
///   - parameterCount: the number of parameters, at most 8; 0 gives an empty array.
///   - parameter: returns the parameter at an index below `parameterCount`.
/// - Returns: ASCII, lower case. A suite reads the digits as a number, so their case does not matter.
package func sealQuestion<Crypto: Cryptography & ~Copyable>(
  command: BoundedText<32>, parameterCount: Int, parameter: (Int) -> BoundedText<64>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> FixedBytes<64> {
  let digest = try commandDigest(
    command: command, parameterCount: parameterCount, parameter: parameter, using: &cryptography)
  var question = ByteBuffer<64>()
  try? question.appendHexadecimal(digest.bytes)
  return FixedBytes<64>(question.bytes)!
}

/// Returns the question of the refusal of a seal: `SHA-256("holdfast/1 seal refusal" ‖ 0x00 ‖ CBOR [command, [parameters]])`
/// as 64 hexadecimal digits. Parameters and result are those of `sealQuestion`, whose question it can never be.
///
/// Source: docs/protocol.md, Seal requests.
package func refusalQuestion<Crypto: Cryptography & ~Copyable>(
  command: BoundedText<32>, parameterCount: Int, parameter: (Int) -> BoundedText<64>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> FixedBytes<64> {
  let digest = try commandDigest(
    "holdfast/1 seal refusal", command, parameterCount, parameter, using: &cryptography)
  var question = ByteBuffer<64>()
  try? question.appendHexadecimal(digest.bytes)
  return FixedBytes<64>(question.bytes)!
}

/// Returns the digest that identifies a command and its parameters:
/// `SHA-256("holdfast/1 seal" ‖ 0x00 ‖ CBOR [command, [parameters]])`, 32 bytes.
///
/// Seals cover it, and a device compares it to find out whether a repeated request is the same one. The parameters are
/// those of `sealQuestion`.
@inline(never)
public func commandDigest<Crypto: Cryptography & ~Copyable>(
  command: BoundedText<32>, parameterCount: Int, parameter: (Int) -> BoundedText<64>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> Digest {
  try commandDigest("holdfast/1 seal", command, parameterCount, parameter, using: &cryptography)
}

@inline(__always)
private func commandDigest<Crypto: Cryptography & ~Copyable>(
  _ domain: StaticString, _ command: BoundedText<32>, _ parameterCount: Int, _ parameter: (Int) -> BoundedText<64>,
  using cryptography: inout Crypto
) throws(CryptographyFailure) -> Digest {
  var hash = try cryptography.sha256()
  hash.append(domain: domain)
  hash.appendCBOR(array: 2)
  hash.appendCBOR(text: command.bytes)
  hash.appendCBOR(array: parameterCount)
  for index in 0..<parameterCount {
    let text = parameter(index)
    hash.appendCBOR(text: text.bytes)
  }
  return try hash.finish()
}
