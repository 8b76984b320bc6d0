/// The keys and secrets that both ends of an activation derive.
///
/// Source: `docs/protocol.md`, "Activation"; RFC 5869.
package struct ActivationKeys: ~Copyable {
  /// SHA-256 over everything that was public: M1 and both points.
  package let transcript: Digest
  /// The key that seals the grant.
  package let grant: Secret<32>
  /// The key of the MAC in the user's confirmation.
  package let client: Secret<32>
  /// The key of the MAC in the device's last answer.
  package let device: Secret<32>
  /// The user's new secrets.
  package let secrets: UserSecrets

  /// Derives the keys from `shared`, the ECDH result, and from the key of the owner's code.
  package init<Crypto: Cryptography & ~Copyable>(
    shared: borrowing Secret<32>, code: borrowing Secret<32>, opening: Digest, devicePoint: P256Point,
    using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var hash = try cryptography.sha256()
    hash.append(opening.bytes)
    hash.append(devicePoint.bytes)
    let transcript: Digest = try hash.finish()
    var input = Secret<64>()
    input.withMutableBytes { (bytes: inout MutableSpan<UInt8>) in
      shared.withBytes { for index in $0.indices { bytes[index] = $0[index] } }
      code.withBytes { for index in $0.indices { bytes[32 + index] = $0[index] } }
    }
    var info = ByteBuffer<32>()
    try? info.append("holdfast/1 activation keys")
    var output = Secret<192>()
    try output.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try input.withBytes { (key: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: key, salt: transcript.bytes, info: info.bytes, into: &bytes)
      }
    }
    self.transcript = transcript
    grant = output.part(at: 0)
    client = output.part(at: 32)
    device = output.part(at: 64)
    secrets = UserSecrets(otp: output.part(at: 96), seal: output.part(at: 128), host: output.part(at: 160))
  }

  /// Returns `SHA-256("holdfast/1 activation" ‖ 0x00 ‖ u16(length of M1) ‖ M1 ‖ client point)`.
  public static func opening<Crypto: Cryptography & ~Copyable>(
    challenge: Span<UInt8>, clientPoint: P256Point, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Digest {
    var hash = try cryptography.sha256()
    hash.append(domain: "holdfast/1 activation")
    hash.append(bigEndian: UInt16(challenge.count))
    hash.append(challenge)
    hash.append(clientPoint.bytes)
    return try hash.finish()
  }

  /// Returns `SHA-256("holdfast/1 unlock" ‖ 0x00 ‖ u16(length of M1) ‖ M1)`.
  static func unlocking<Crypto: Cryptography & ~Copyable>(
    challenge: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Digest {
    var hash = try cryptography.sha256()
    hash.append(domain: "holdfast/1 unlock")
    hash.append(bigEndian: UInt16(challenge.count))
    hash.append(challenge)
    return try hash.finish()
  }
}

/// The three secrets of a user, 32 bytes each.
public struct UserSecrets: ~Copyable, Sendable {
  /// The secret of the user's one-time passwords.
  public let otp: Secret<32>
  /// The secret of the user's seals.
  public let seal: Secret<32>
  /// The secret of the device's host codes for this user.
  public let host: Secret<32>

  /// Takes over the three secrets.
  public init(otp: consuming Secret<32>, seal: consuming Secret<32>, host: consuming Secret<32>) {
    self.otp = otp
    self.seal = seal
    self.host = host
  }

  /// Calls `body` with the secret of one purpose, 32 bytes.
  public borrowing func withBytes<Failure: Error>(
    of purpose: CodePurpose, _ body: (Span<UInt8>) throws(Failure) -> Void
  ) throws(Failure) {
    switch purpose {
    case .otp: try otp.withBytes(body)
    case .seal: try seal.withBytes(body)
    case .host: try host.withBytes(body)
    }
  }
}

/// Returns `HMAC(key, prefix ‖ digest)`, all 32 bytes of it.
package func authenticationCode<Crypto: Cryptography & ~Copyable>(
  key: borrowing Secret<32>, prefix: StaticString = "", _ digest: Digest, using cryptography: inout Crypto
) throws(CryptographyFailure) -> MAC {
  try key.withBytes { (key) throws(CryptographyFailure) in
    var mac = try cryptography.hmacSHA256(key: key)
    mac.append(prefix)
    mac.append(digest.bytes)
    return try mac.finish()
  }
}
