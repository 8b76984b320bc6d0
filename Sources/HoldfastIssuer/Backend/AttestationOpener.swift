import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A backend's keys for attestation tokens. It decrypts and verifies tokens, and checks their claims.
package struct AttestationOpener: ~Copyable {
  private var encryption: JWEKey
  private let signing: JWSKey

  /// The permitted difference between clocks, in seconds.
  static var skewSeconds: UInt64 { 30 }

  /// Creates an opener.
  ///
  /// - Parameters:
  ///   - encryption: The backend's private key.
  ///   - signing: The key that verifies the signature of the attestation service.
  package init(encryption: consuming JWEKey, signing: consuming JWSKey) {
    self.encryption = encryption
    self.signing = signing
  }

  /// Opens an attestation token for a device.
  ///
  /// - Parameters:
  ///   - token: The token, as the app brought it.
  ///   - device: The device for which the app wants a measurement token. The attestation token must name it and its key.
  ///   - hash: The digest of the app's data that the token must be bound to, 32 bytes; nil for a token without it.
  ///   - audiences: The values of the claim `aud` that count in addition to the policy's.
  ///   - policy: The owner's rules.
  ///   - now: The present time, in Unix seconds.
  /// - Throws: The first reason for refusal.
  package mutating func open(
    _ token: Span<UInt8>, for device: DeviceDescriptor, hash: Digest? = nil, audiences: [BoundedText<255>] = [],
    under policy: ServicePolicy, now: UInt64
  ) throws(IssuanceRefusal) -> AttestedApp {
    var cryptography = OpenSSLCryptography()
    let claims: AttestationClaims
    do throws(JOSEFault) { claims = try verified(token, using: &cryptography) } catch { throw .attestation(error) }
    let (binding, payload): (Digest, Digest)
    do throws(CryptographyFailure) {
      binding = try deviceBinding(device, using: &cryptography)
      payload = try payloadBinding(device, hash: hash, using: &cryptography)
    } catch { throw .attestation(.cryptography) }
    let audiences = audiences + [policy.audience]
    if let refusal = refusal(of: claims, binding: payload, audiences, under: policy, now: now) { throw refusal }
    do throws(CryptographyFailure) {
      return try AttestedApp(claims, binding: binding, namedBy: policy, using: &cryptography)
    } catch { throw .attestation(.cryptography) }
  }

  private mutating func verified(
    _ token: Span<UInt8>, using cryptography: inout OpenSSLCryptography
  ) throws(JOSEFault) -> AttestationClaims {
    let signed = try encryption.open(token, contentType: "JWT")
    let payload = try signing.verify(signed.bytes, type: AttestationClaims.type, using: &cryptography)
    do throws(EncodingFault) { return try AttestationClaims.read(payload.bytes) } catch { throw JOSEFault(error) }
  }

  private func refusal(
    of claims: borrowing AttestationClaims, binding: Digest, _ audiences: [BoundedText<255>],
    under policy: ServicePolicy, now: UInt64
  ) -> IssuanceRefusal? {
    guard claims.issuer == policy.attestationIssuer else { return .issuer }
    guard audiences.contains(claims.audience) else { return .audience }
    guard claims.issuedAt < claims.expires, claims.issuedAt <= now + Self.skewSeconds else { return .notYetValid }
    guard claims.expires + Self.skewSeconds > now else { return .expired }
    guard claims.binding == binding else { return .anotherDevice }
    guard claims.subject != nil || policy.subject != nil else { return .unnamedApp }
    return nil
  }
}

/// An app with the attestation token that it brought for a device.
package struct AttestedApp: ~Copyable, Sendable {
  /// The app and its measurements.
  package let app: AppraisedApp
  /// The claim `did`: the prover's host.
  package let hostID: HostID
  /// The claim `arc`.
  package let responseCode: BoundedText<16>
  /// The device with its key: SHA-256 of the device's id ‖ public point.
  package let binding: Digest

  init(
    _ claims: borrowing AttestationClaims, binding: Digest, namedBy policy: ServicePolicy,
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) {
    app = try AppraisedApp(
      subject: claims.subject ?? policy.subject ?? BoundedText(), version: claims.version ?? .zero,
      integrity: claims.integrity.copy(), device: claims.device.copy(), proofKey: claims.proofKey.copy(),
      using: &cryptography)
    (hostID, responseCode, self.binding) = (claims.deviceID, claims.responseCode, binding)
  }
}
