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
      let message = try message(suite, input, pinDigest: pinDigest.bytes)
      var whole = ByteBuffer<64>(zeros: suite.hash.byteCount)
      var bytes = whole.mutableBytes
      try suite.hash.authenticate(message.bytes, key: key, using: &cryptography, into: &bytes)
      return whole
    } catch {
      throw .cryptography
    }
  }

  /// Suite, zero, C, Q, P, S and T, as far as there are: at most 64 + 1 + 8 + 128 + 64 + 512 + 8 bytes, which always fit.
  ///
  /// Source: RFC 6287 §5.1.
  private static func message(
    _ suite: OCRASuite, _ input: borrowing OCRAInput, pinDigest: Span<UInt8>
  ) throws(CryptographyFailure) -> ByteBuffer<785> {
    var message = ByteBuffer<785>()
    do throws(EncodingFault) {
      try message.append(suite.text.bytes)
      try message.append(0)
      if let counter = input.counter { try message.append(bigEndian: counter) }
      try message.append(input.question.bytes.bytes)
      try message.append(pinDigest)
      if let session = input.session, let byteCount = suite.sessionByteCount {
        try message.appendZeros(byteCount - session.count)
        try message.append(session)
      }
      if let timeStep = input.timeStep { try message.append(bigEndian: timeStep) }
    } catch {
      throw CryptographyFailure()
    }
    return message
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
