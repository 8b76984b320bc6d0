import HoldfastCore
import HoldfastOpenSSL
import TestSupport

// The operations on plain arrays; nil where they throw.

func gcmOpen(_ key: [UInt8], _ nonce: [UInt8], _ data: [UInt8], _ sealed: [UInt8], _ tag: [UInt8]) -> [UInt8]? {
  var message = sealed
  var span = message.mutableSpan
  guard let tag = AuthenticationTag(tag.span) else { return nil }
  do {
    try AESGCM.open(key: key.span, nonce: nonce.span, authenticating: data.span, message: &span, tag: tag)
  } catch {
    return nil
  }
  return message
}

/// The message and then the tag.
func gcmSeal(_ key: [UInt8], _ nonce: [UInt8], _ data: [UInt8], _ plain: [UInt8]) throws -> [UInt8] {
  var message = plain
  var tag = AuthenticationTag()
  var span = message.mutableSpan
  try AESGCM.seal(key: key.span, nonce: nonce.span, authenticating: data.span, message: &span, tag: &tag)
  return message + tag.bytes.array
}

func unwrap(_ key: [UInt8], _ wrapped: [UInt8]) -> [UInt8]? {
  guard let plain = try? AESKeyWrap.unwrap(key: key.span, wrapped: wrapped.span) else { return nil }
  return plain.bytes.array
}

func verifyHMAC(_ hash: HMAC, _ key: [UInt8], _ message: [UInt8], _ tag: [UInt8]) -> Bool {
  do {
    try hash.verify(tag.span, of: message.span, key: key.span)
    return true
  } catch {
    return false
  }
}

func streamedHMAC(_ key: [UInt8], _ message: [UInt8]) throws -> [UInt8] {
  var cryptography = OpenSSLCryptography()
  var mac = try cryptography.hmacSHA256(key: key.span)
  mac.append(message.span)
  return (try mac.finish() as MAC).bytes.array
}

func hkdf(_ inputKey: [UInt8], _ salt: [UInt8], _ info: [UInt8], _ count: Int) -> [UInt8]? {
  var cryptography = OpenSSLCryptography()
  var output = [UInt8](repeating: 0, count: count)
  var span = output.mutableSpan
  do {
    try cryptography.hkdfSHA256(inputKey: inputKey.span, salt: salt.span, info: info.span, into: &span)
  } catch {
    return nil
  }
  return output
}

/// Throws for a scalar that is none; nil for a point that is refused.
func agree(_ scalar: [UInt8], _ point: [UInt8]) throws -> [UInt8]? {
  guard let secret = Secret<32>(copying: scalar.span) else { throw CryptographyFailure() }
  var key = try P256PrivateKey(scalar: secret)
  guard let point = P256Point(point.span) else { return nil }
  var shared = Secret<32>()
  do {
    try key.agree(with: point, into: &shared)
  } catch {
    return nil
  }
  return shared.withBytes { $0.array }
}

func verifyECDSA(_ point: [UInt8], _ message: [UInt8], _ signature: [UInt8]) throws -> Bool {
  guard let point = P256Point(point.span), let signature = FixedBytes<64>(signature.span) else { return false }
  var cryptography = OpenSSLCryptography()
  var hash = cryptography.sha256()
  hash.append(message.span)
  let digest: Digest = try hash.finish()
  do {
    try cryptography.p256Verify(key: point, digest: digest, signature: signature)
    return true
  } catch {
    return false
  }
}

func decryptOAEP(
  _ key: [UInt8], _ message: [UInt8], label: [UInt8], hash: OAEPHash = .sha256
) throws -> [UInt8]? {
  let key = try RSAPrivateKey(pkcs8: key.span)
  guard let plain = try? key.decryptOAEP(message.span, hash: hash, label: label.span) else { return nil }
  return plain.bytes.array
}
