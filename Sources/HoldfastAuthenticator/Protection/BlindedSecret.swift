import HoldfastCore
import HoldfastOpenSSL

/// A shared secret as it is stored: combined with a mask that is derived from a PIN or a key.
///
/// No checksum or other trace of the secret is stored next to it. Every other PIN yields a different secret, which
/// makes well-formed codes too.
package final class BlindedSecret: Sendable {
  package let protection: Protection
  /// The blinded bytes, as many as the secret has.
  package let bytes: SecretBytes

  package init(protection: Protection, bytes: consuming SecretBytes) {
    self.protection = protection
    self.bytes = bytes
  }

  /// Blinds `secret`.
  ///
  /// Source: RFC 7914 for a PIN, RFC 5869 for a key.
  ///
  /// - Throws: `protectionMismatch` if `protector` is of another kind.
  package convenience init(
    blinding secret: borrowing SecretBytes, with protector: borrowing ProtectionSecret, as protection: Protection
  ) throws(AuthenticatorFault) {
    var bytes = try protection.mask(byteCount: secret.count, from: protector)
    var output = bytes.mutableBytes
    secret.withBytes { secret in
      for index in output.indices { output[index] ^= secret[index] }
    }
    self.init(protection: protection, bytes: bytes)
  }

  /// Returns the secret if `protector` is correct. A wrong one yields different bytes, indistinguishably.
  package func unblinded(with protector: borrowing ProtectionSecret) throws(AuthenticatorFault) -> SecretBytes {
    var secret = try protection.mask(byteCount: bytes.count, from: protector)
    var output = secret.mutableBytes
    bytes.withBytes { blinded in
      for index in output.indices { output[index] ^= blinded[index] }
    }
    return secret
  }

  package func isSame(as other: BlindedSecret) -> Bool {
    let haveSameBytes = bytes.withBytes { bytes in other.bytes.withBytes { constantTimeEqual(bytes, $0) } }
    return haveSameBytes && protection == other.protection
  }
}

extension Protection {
  /// Derives the mask that is combined with a secret of `byteCount` bytes.
  package func mask(byteCount: Int, from protector: borrowing ProtectionSecret) throws(AuthenticatorFault)
    -> SecretBytes
  {
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
  /// Lends the digits of the PIN or the bytes of the key to `body`.
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

/// The input with which a user blinds a record's secret or uses it.
public enum ProtectionSecret: ~Copyable, Sendable {
  /// No input: the secret is stored unprotected.
  case none
  /// A PIN.
  case pin(PIN)
  /// A key from another authenticator.
  case key(ExternalKey)

  /// The kind of protection that the input belongs to.
  package var kind: ProtectionKind {
    switch self {
    case .none: .none
    case .pin: .pin
    case .key: .key
    }
  }
}

extension ProtectionSecret {
  /// The rule for new PINs that the input breaks; nil if it breaks none.
  var ruleFault: PINFault? {
    switch self {
    case .pin(let pin): pin.ruleFault
    default: nil
    }
  }
}

/// The ways in which a record's secret is stored. The raw value is the one in the file.
package enum ProtectionKind: UInt8, Sendable, Equatable {
  /// The secret is stored unprotected.
  case none = 0
  /// The secret is blinded by a PIN.
  case pin = 1
  /// The secret is blinded by an external key.
  case key = 2

  /// The input that the use of the secret requires.
  package var mode: PINMode {
    switch self {
    case .none: .none
    case .pin: .current
    case .key: .external
    }
  }
}

/// A key from another authenticator, such as a fingerprint reader, a smart card or a key ring, which replaces the PIN.
public struct ExternalKey: ~Copyable, Sendable {
  /// The permitted lengths of a key, in bytes. A shorter key could be guessed.
  public static let byteCounts = 16...1024

  let bytes: SecretBytes

  /// Copies `bytes`. Returns nil unless there are 16 to 1,024 of them.
  public init?(_ bytes: Span<UInt8>) {
    guard Self.byteCounts.contains(bytes.count) else { return nil }
    self.bytes = SecretBytes(copying: bytes)
  }
}
