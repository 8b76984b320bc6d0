import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The keys of an attestation service, and the attestation tokens that it makes with them. It has no memory, and decides
/// nothing.
package struct AttestationSigner: ~Copyable {
  /// The values that are derived from the account secret.
  package let account: AccountDerivations
  private var signing: JWSKey
  private let encryption: JWEKey

  /// Creates a signer.
  ///
  /// - Parameters:
  ///   - account: The account secret, at least 32 bytes.
  ///   - signing: The key that signs attestation tokens.
  ///   - encryption: The backend's key, of which only the encrypting half is used.
  package init(account: consuming SecretBytes, signing: consuming JWSKey, encryption: consuming JWEKey) {
    self.account = AccountDerivations(account: account)
    self.signing = signing
    self.encryption = encryption
  }

  /// Makes an attestation token for approved evidence. The service computes both measurements itself.
  ///
  /// - Parameters:
  ///   - evidence: The evidence of an approved app.
  ///   - image: The approval of its image.
  ///   - keys: The keys of the release that the evidence names.
  ///   - device: The device for which the app wants a measurement token.
  ///   - audience: The claim `aud`; nil for the policy's.
  ///   - hash: The digest of the app's data that the token is bound to, 32 bytes; nil for a token bound to the device only.
  ///   - policy: The owner's rules.
  ///   - now: The present time, in Unix seconds.
  package mutating func attest(
    _ evidence: Evidence, of image: ApprovedImage, keys: borrowing ReleaseKeys, for device: DeviceDescriptor,
    audience: BoundedText<255>? = nil, hash: Digest? = nil, under policy: ServicePolicy, now: UInt64,
    random: inout some RandomSource & ~Copyable
  ) throws(CryptographyFailure) -> Attestation {
    var cryptography = OpenSSLCryptography()
    let app = try AppraisedApp(evidence, of: image, proofKey: keys.proof, using: &cryptography)
    let hostID = try account.deviceID(of: evidence.device, using: &cryptography)
    let claims = AttestationClaims(
      issuer: policy.attestationIssuer, audience: audience ?? policy.audience, issuedAt: now,
      expires: now + policy.attestationSeconds, deviceID: hostID,
      responseCode: try account.responseCode(device: hostID, properties: evidence.properties, using: &cryptography),
      binding: try payloadBinding(device, hash: hash, using: &cryptography), integrity: app.integrity.copy(),
      device: app.device.copy(), proofKey: app.proofKey.copy(), subject: image.subject, version: image.version)
    return Attestation(
      token: try write(claims, random: &random, using: &cryptography), responseCode: claims.responseCode,
      hostID: hostID, expires: claims.expires)
  }

  /// Signs the claims, then encrypts them to the backend.
  private mutating func write(
    _ claims: borrowing AttestationClaims, random: inout some RandomSource & ~Copyable,
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> [UInt8] {
    var payload = ByteBuffer<2048>()
    do throws(EncodingFault) { try claims.appendJSON(to: &payload) } catch { throw CryptographyFailure() }
    do throws(JOSEFault) {
      let signed = try signing.sign(payload.bytes, type: AttestationClaims.type, using: &cryptography)
      return try encryption.seal(signed.bytes, contentType: "JWT", random: &random)
    } catch { throw CryptographyFailure() }
  }
}

/// An attestation token, and its claims that are not secret.
package struct Attestation: Sendable, Equatable {
  /// The token: a compact JWS in a compact JWE, which only the backend can read.
  package let token: [UInt8]
  /// The claim `arc`.
  package let responseCode: BoundedText<16>
  /// The claim `did`.
  package let hostID: HostID
  /// The claim `exp`, in Unix seconds.
  package let expires: UInt64
}

/// Computes the claim `pay`, which binds an attestation token to the device that the app asks for, and to the app's data.
///
/// Without data, it is ``deviceBinding(_:using:)``. With data, it is
/// `SHA-256("holdfast/1 binding" ‖ 0x00 ‖ device binding ‖ hash)`.
///
/// - Parameter hash: The digest of the app's data, 32 bytes; nil if there is none.
package func payloadBinding(
  _ device: DeviceDescriptor, hash: Digest?, using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Digest {
  let device = try deviceBinding(device, using: &cryptography)
  guard let hash else { return device }
  var binding = cryptography.sha256()
  binding.append(domain: "holdfast/1 binding")
  binding.append(device.bytes)
  binding.append(hash.bytes)
  return try binding.finish()
}

/// Identifies a device with its key: SHA-256 of device id ‖ public point.
package func deviceBinding(
  _ device: DeviceDescriptor, using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Digest {
  var hash = cryptography.sha256()
  hash.append(device.deviceID.bytes)
  hash.append(device.publicKey.point.bytes)
  return try hash.finish()
}

/// The values that the service derives from its account secret, so that they reveal nothing to other parties.
package struct AccountDerivations: ~Copyable {
  package let account: SecretBytes

  package init(account: consuming SecretBytes) {
    self.account = account
  }

  /// Derives the claim `did`: 16 bytes that are always the same for the same prover's host.
  package borrowing func deviceID(
    of components: [Component], using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> HostID {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attested device")
    mac.appendCBOR(array: components.count)
    for component in components {
      mac.appendCBOR(array: 2)
      mac.appendCBOR(text: component.id.bytes)
      mac.appendCBOR(bytes: component.digest.bytes)
    }
    let code: MAC = try mac.finish()
    return HostID(code.bytes.extracting(first: 16)) ?? HostID()
  }

  /// Derives the claim `arc`: ten base32 characters that represent the prover's host and the properties, for use in
  /// logs.
  ///
  /// Source: RFC 4648 §6 for the alphabet.
  package borrowing func responseCode(
    device: HostID, properties: [BoundedText<32>], using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> BoundedText<16> {
    var mac = try cryptography.hmacSHA256(key: account.bytes)
    mac.append(domain: "holdfast/1 attestation response code")
    mac.append(device.bytes)
    mac.appendCBOR(array: properties.count)
    for property in properties { mac.appendCBOR(text: property.bytes) }
    let code: MAC = try mac.finish()
    var bits: UInt64 = 0
    for index in 0..<8 { bits = bits << 8 | UInt64(code[index]) }
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    var text: [UInt8] = []
    for _ in 0..<10 {
      text.append(alphabet[Int(bits >> 59)])
      bits <<= 5
    }
    return BoundedText<16>(text.span) ?? BoundedText()
  }
}
