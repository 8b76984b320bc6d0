import HoldfastCore
import HoldfastOpenSSL

/// The whole state as one armoured line: `hfstate1` and the base64url of what docs/authenticator.md describes.
enum StateString {
  static let prefix = Array("hfstate1".utf8)
  /// The most bytes of the line, white space apart.
  static let maximumByteCount = 1 << 20

  /// Cost, salt and nonce.
  private static let headerByteCount = 3 + 16 + 12
  private static let tagByteCount = 16
  private static let checkByteCount = 4

  /// Encrypts `state` under a passphrase.
  static func seal<Random: RandomSource & ~Copyable>(
    _ state: borrowing SecretBytes, under passphrase: borrowing Passphrase, cost: ScryptCost, random: inout Random,
    using cryptography: inout OpenSSLCryptography
  ) throws(AuthenticatorFault) -> [UInt8] {
    var body = [UInt8(cost.logarithm), UInt8(cost.blockSize), UInt8(cost.parallelization)]
    do throws(RandomFailure) {
      let fresh: FixedBytes<28> = try random.fixedBytes()
      body.append(fresh.bytes)
    } catch { throw .failed }
    let header = body
    var message: [UInt8] = []
    message.append(state.bytes)
    var tag = FixedBytes<16>()
    do throws(CryptographyFailure) {
      let key = try key(header, passphrase, cost)
      let data = prefix + header
      var span = message.mutableSpan
      try cryptography.aes256GCMSeal(
        key: key, nonce: header.span.extracting(last: 12), authenticating: data.span, message: &span, tag: &tag)
      body += message + [UInt8](tag.bytes)
      body += try check(body)
    } catch { throw .failed }
    var text = prefix
    text.append(asBase64URL: body.span)
    return text
  }

  /// Decrypts a line, which may have been wrapped. Throws `malformedState`, `wrongPassphrase`, `failed`.
  static func open(
    _ text: Span<UInt8>, under passphrase: borrowing Passphrase, using cryptography: inout OpenSSLCryptography
  ) throws(AuthenticatorFault) -> SecretBytes {
    let (body, cost) = try parse(text)
    let header = Array(body[..<headerByteCount])
    guard let tag = FixedBytes<16>(body.span.extracting(last: tagByteCount)) else { throw .malformedState }
    let key: Secret<32>
    do throws(CryptographyFailure) { key = try self.key(header, passphrase, cost) } catch { throw .failed }
    var message = SecretBytes(copying: body.span.extracting(headerByteCount..<body.count - tagByteCount))
    do throws(CryptographyFailure) {
      let data = prefix + header
      var span = message.mutableBytes
      try cryptography.aes256GCMOpen(
        key: key, nonce: header.span.extracting(last: 12), authenticating: data.span, message: &span, tag: tag)
    } catch { throw .wrongPassphrase }
    return message
  }

  /// Throws `malformedState` unless `text` is a state string that was not mistyped. Needs no passphrase.
  static func check(_ text: Span<UInt8>) throws(AuthenticatorFault) {
    _ = try parse(text)
  }

  /// Header, ciphertext and tag, and what the header says of the cost.
  private static func parse(_ text: Span<UInt8>) throws(AuthenticatorFault) -> (body: [UInt8], cost: ScryptCost) {
    var line: [UInt8] = []
    for index in text.indices where ![0x20, 0x09, 0x0a, 0x0d].contains(text[index]) { line.append(text[index]) }
    guard line.count <= maximumByteCount, line.starts(with: prefix) else { throw .malformedState }
    var body: [UInt8] = []
    var position = prefix.count
    while position < line.count {
      // 64 characters are 48 bytes; only the last ones may be fewer.
      let end = min(position + 64, line.count)
      var part = ByteBuffer<48>()
      do throws(EncodingFault) { try part.append(base64URL: line.span.extracting(position..<end)) } catch {
        throw .malformedState
      }
      body.append(part.bytes)
      position = end
    }
    guard body.count >= headerByteCount + tagByteCount + checkByteCount else { throw .malformedState }
    let given = Array(body.suffix(checkByteCount))
    body.removeLast(checkByteCount)
    let expected: [UInt8]
    do throws(CryptographyFailure) { expected = try check(body) } catch { throw .failed }
    guard given == expected,
      let cost = ScryptCost(logarithm: Int(body[0]), blockSize: Int(body[1]), parallelization: Int(body[2]))
    else { throw .malformedState }
    return (body, cost)
  }

  /// The first bytes of a hash: they find typing errors, and need no key.
  private static func check(_ body: [UInt8]) throws(CryptographyFailure) -> [UInt8] {
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 state string")
    hash.append(body.span)
    let digest: Digest = try hash.finish()
    return [UInt8](digest.bytes.extracting(first: checkByteCount))
  }

  private static func key(
    _ header: [UInt8], _ passphrase: borrowing Passphrase, _ cost: ScryptCost
  ) throws(CryptographyFailure) -> Secret<32> {
    var key = Secret<32>()
    let salt = header.span.extracting(3..<19)
    let password = passphrase.bytes.bytes
    try key.withMutableBytes { (key: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try Scrypt.derive(password: password, salt: salt, cost: cost, into: &key)
    }
    return key
  }
}
