import HoldfastCore
import HoldfastOpenSSL

/// A shared secret as it is stored: combined with the masks that are derived from a PIN, a key and the host's secret.
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
  /// Source: RFC 7914 for a PIN, RFC 5869 for a key and for a host's secret.
  ///
  /// - Throws: `protectionMismatch` if `protector` is of another kind, `otherHost`.
  package convenience init(
    blinding secret: borrowing SecretBytes, with protector: borrowing ProtectionSecret, as protection: Protection
  ) throws(AuthenticatorFault) {
    guard protection.inputs == protector.inputs else { throw .protectionMismatch(protection.inputs) }
    var bytes = SecretBytes(copying: secret.bytes)
    try protection.combineMasks(with: &bytes, from: protector)
    self.init(protection: protection, bytes: bytes)
  }

  /// Returns the secret if `protector` is correct. A wrong PIN or key yields different bytes, indistinguishably.
  ///
  /// - Throws: `protectionMismatch` if `protector` is of another kind, `otherHost`.
  package func unblinded(with protector: borrowing ProtectionSecret) throws(AuthenticatorFault) -> SecretBytes {
    guard protection.inputs == protector.inputs else { throw .protectionMismatch(protection.inputs) }
    var secret = bytes.withBytes { SecretBytes(copying: $0) }
    try protection.combineMasks(with: &secret, from: protector)
    return secret
  }

  /// Returns the secret as `protector` opens it, which may have more inputs than are needed; nil if it lacks one, or has another
  /// host's secret.
  func unblinded(withInputsOf protector: borrowing ProtectionSecret) throws(AuthenticatorFault) -> SecretBytes? {
    guard protection.inputs.isSubset(of: protector.inputs) else { return nil }
    var secret = bytes.withBytes { SecretBytes(copying: $0) }
    do throws(AuthenticatorFault) { try protection.combineMasks(with: &secret, from: protector) } catch {
      guard error == .otherHost else { throw error }
      return nil
    }
    return secret
  }

  /// Takes the masks of `old` off and puts fresh ones of `new` on. The secret itself is never in memory if another mask
  /// stays.
  ///
  /// - Throws: `protectionMismatch` if the secret lacks one of the old masks or would get one twice, `otherHost`.
  func exchanging<Random: RandomSource & ~Copyable>(
    _ old: borrowing ProtectionSecret, for new: borrowing ProtectionSecret, cost: ScryptCost, random: inout Random
  ) throws(AuthenticatorFault) -> BlindedSecret {
    let rest = protection.removing(old.inputs)
    guard old.inputs.isSubset(of: protection.inputs), rest.inputs.isDisjoint(with: new.inputs) else {
      throw .protectionMismatch(protection.inputs)
    }
    let fresh = try Protection.fresh(for: new, cost: cost, random: &random)
    var changed = bytes.withBytes { SecretBytes(copying: $0) }
    try protection.only(old.inputs).combineMasks(with: &changed, from: old)
    try fresh.combineMasks(with: &changed, from: new)
    return BlindedSecret(protection: rest.adding(fresh), bytes: changed)
  }

  package func isSame(as other: BlindedSecret) -> Bool {
    let haveSameBytes = bytes.withBytes { bytes in other.bytes.withBytes { constantTimeEqual(bytes, $0) } }
    return haveSameBytes && protection == other.protection
  }
}

extension Protection {
  /// Combines `bytes` with all masks, by XOR: this blinds a secret, and done again, it unblinds it. Other inputs of `protector` do
  /// not matter.
  fileprivate func combineMasks(
    with bytes: inout SecretBytes, from protector: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) {
    guard inputs.isSubset(of: protector.inputs) else { throw .protectionMismatch(inputs) }
    if let host, protector.hostCheck(salt: host.salt).map({ constantTimeEqual($0.bytes, host.check.bytes) }) != true {
      throw .otherHost
    }
    do throws(CryptographyFailure) {
      if let pin {
        try protector.withPIN { (digits) throws(CryptographyFailure) in
          try bytes.combine { (mask) throws(CryptographyFailure) in
            try Scrypt.derive(password: digits, salt: pin.salt.bytes, cost: pin.cost, into: &mask)
          }
        }
      }
      if let key {
        try protector.withKey { (input) throws(CryptographyFailure) in
          try bytes.combine { (mask) throws(CryptographyFailure) in
            try derive("holdfast/1 authenticator mask", from: input, salt: key, into: &mask)
          }
        }
      }
      if let host {
        try protector.withHost { (input) throws(CryptographyFailure) in
          try bytes.combine { (mask) throws(CryptographyFailure) in
            try derive("holdfast/1 authenticator host mask", from: input, salt: host.salt, into: &mask)
          }
        }
      }
    } catch { throw .failed }
  }
}

extension ProtectionSecret {
  /// Returns the value that recognises the host with this secret; nil without one, or if the cryptography fails.
  borrowing func hostCheck(salt: FixedBytes<16>) -> FixedBytes<8>? {
    var check = SecretBytes(zeros: 8)
    var output = check.mutableBytes
    do throws(CryptographyFailure) {
      try withHost { (input) throws(CryptographyFailure) in
        try derive("holdfast/1 authenticator host check", from: input, salt: salt, into: &output)
      }
    } catch { return nil }
    return FixedBytes<8>(check.bytes)
  }
}

/// Derives bytes by HKDF-SHA-256, for one purpose.
private func derive(
  _ domain: StaticString, from input: Span<UInt8>, salt: FixedBytes<16>, into output: inout MutableSpan<UInt8>
) throws(CryptographyFailure) {
  var info: [UInt8] = []
  info.append(domain: domain)
  try HKDF.derive(hash: .sha256, inputKey: input, salt: salt.bytes, info: info.span, into: &output)
}

extension SecretBytes {
  /// Combines the bytes with a mask of the same length, which `derive` writes, by XOR.
  fileprivate mutating func combine(
    _ derive: (inout MutableSpan<UInt8>) throws(CryptographyFailure) -> Void
  ) throws(CryptographyFailure) {
    var mask = SecretBytes(zeros: count)
    var output = mask.mutableBytes
    try derive(&output)
    var bytes = mutableBytes
    mask.withBytes { mask in
      for index in bytes.indices { bytes[index] ^= mask[index] }
    }
  }
}
