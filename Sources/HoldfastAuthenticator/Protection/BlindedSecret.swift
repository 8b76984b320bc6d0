import HoldfastCore
import HoldfastOpenSSL

/// A shared secret as it is stored: combined with a mask that follows from a PIN or a key.
///
/// There is no checksum and no other trace of the secret beside it: with each other PIN it is another secret, which makes
/// well-formed codes too.
final class BlindedSecret: Sendable {
  let protection: Protection
  /// As many bytes as the secret has.
  let bytes: SecretBytes

  init(protection: Protection, bytes: consuming SecretBytes) {
    self.protection = protection
    self.bytes = bytes
  }

  /// Blinds `secret`.
  ///
  /// Source: RFC 7914 for a PIN, RFC 5869 for a key. Throws `protectionMismatch` when `protector` is of another kind.
  convenience init(
    blinding secret: borrowing SecretBytes, with protector: borrowing ProtectionSecret, as protection: Protection
  ) throws(AuthenticatorFault) {
    var bytes = try protection.mask(byteCount: secret.count, from: protector)
    var output = bytes.mutableBytes
    secret.withBytes { secret in
      for index in output.indices { output[index] ^= secret[index] }
    }
    self.init(protection: protection, bytes: bytes)
  }

  /// The secret, where `protector` is the right one: nothing tells.
  func unblinded(with protector: borrowing ProtectionSecret) throws(AuthenticatorFault) -> SecretBytes {
    var secret = try protection.mask(byteCount: bytes.count, from: protector)
    var output = secret.mutableBytes
    bytes.withBytes { blinded in
      for index in output.indices { output[index] ^= blinded[index] }
    }
    return secret
  }

  func isSame(as other: BlindedSecret) -> Bool {
    let haveSameBytes = bytes.withBytes { bytes in other.bytes.withBytes { constantTimeEqual(bytes, $0) } }
    return haveSameBytes && protection == other.protection
  }
}

extension Protection {
  /// What a secret of `byteCount` bytes is combined with.
  func mask(byteCount: Int, from protector: borrowing ProtectionSecret) throws(AuthenticatorFault) -> SecretBytes {
    var mask = SecretBytes(zeros: byteCount)
    var output = mask.mutableBytes
    do throws(CryptographyFailure) {
      switch (self, protector.kind) {
      case (.none, .none): break
      case (.pin(let salt, let cost), .pin):
        try protector.withBytes { (pin) throws(CryptographyFailure) in
          try Scrypt.derive(password: pin, salt: salt.bytes, cost: cost, into: &output)
        }
      case (.key(let salt), .key):
        var info: [UInt8] = []
        info.append(domain: "holdfast/1 authenticator mask")
        try protector.withBytes { (key) throws(CryptographyFailure) in
          try HKDF.derive(hash: .sha256, inputKey: key, salt: salt.bytes, info: info.span, into: &output)
        }
      default: throw CryptographyFailure()
      }
    } catch {
      throw kind == protector.kind ? .failed : .protectionMismatch(kind.mode)
    }
    return mask
  }
}

extension ProtectionSecret {
  /// Lends the PIN's digits or the key's bytes.
  fileprivate borrowing func withBytes(
    _ body: (Span<UInt8>) throws(CryptographyFailure) -> Void
  ) throws(CryptographyFailure) {
    switch self {
    case .none: throw CryptographyFailure()
    case .pin(let pin): try body(pin.digits.bytes)
    case .key(let key): try body(key.bytes.bytes)
    }
  }
}
