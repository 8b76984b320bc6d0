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
