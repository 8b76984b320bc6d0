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

/// What a user gives to have a record's secret blinded, or to use it.
package enum ProtectionSecret: ~Copyable, Sendable {
  case none
  case pin(PIN)
  case key(ExternalKey)

  /// Which kind of protection it is for.
  package var kind: ProtectionKind {
    switch self {
    case .none: .none
    case .pin: .pin
    case .key: .key
    }
  }
}

extension ProtectionSecret {
  /// Which rule for a new one it breaks; nil for a good one.
  var ruleFault: PINFault? {
    switch self {
    case .pin(let pin): pin.ruleFault
    default: nil
    }
  }
}

/// How a record's secret is stored. The raw value is what is written.
package enum ProtectionKind: UInt8, Sendable, Equatable {
  /// As it is.
  case none = 0
  /// Blinded by a PIN.
  case pin = 1
  /// Blinded by an external key.
  case key = 2

  /// What has to be asked for.
  package var mode: PINMode {
    switch self {
    case .none: .none
    case .pin: .current
    case .key: .external
    }
  }
}

/// A key in place of a PIN, handed over by another authenticator: a fingerprint reader, a smart card, a key ring.
package struct ExternalKey: ~Copyable, Sendable {
  /// The fewest and the most bytes of a key: below, it could be guessed.
  package static let byteCounts = 16...1024

  let bytes: SecretBytes

  /// Copies `bytes`; nil unless there are 16 to 1,024.
  package init?(_ bytes: Span<UInt8>) {
    guard Self.byteCounts.contains(bytes.count) else { return nil }
    self.bytes = SecretBytes(copying: bytes)
  }
}
