import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL

/// Checks attestation tokens and issues measurement tokens.
///
/// Source: RFC 9334 §2.1 (the *relying party* there). Used by one thread at a time.
public struct Backend<Issued: IssuedBaselines & ~Copyable>: ~Copyable {
  var encryption: JWEKey
  let signing: JWSKey
  var issuer: IssuerSecrets
  public let policy: ServicePolicy
  var issued: Issued

  /// - Parameters:
  ///   - encryption: the key to which attestation tokens are encrypted.
  ///   - signing: what verifies their signature.
  ///   - issuer: vouches for measurement tokens, and for nothing else.
  public init(
    encryption: consuming JWEKey, signing: consuming JWSKey, issuer: consuming IssuerSecrets, policy: ServicePolicy,
    issued: consuming Issued
  ) {
    self.encryption = encryption
    self.signing = signing
    self.issuer = issuer
    self.policy = policy
    self.issued = issued
  }

  /// What devices must trust.
  public var issuerKey: PublicKeyJWK { PublicKeyJWK(point: issuer.signing.publicPoint) }

  /// How far clocks may differ.
  static var skewSeconds: UInt64 { 30 }

  /// Issues a measurement token for `device` on the strength of an attestation token.
  ///
  /// That the baseline is this device's, and the key too, is on the disk before the token is made: who got a token for a
  /// device encrypted to a key of his own would read the measurements in it, and could encrypt it anew to the device's.
  public mutating func issue(
    attestation token: Span<UInt8>, for device: DeviceDescriptor, options: IssuanceOptions = IssuanceOptions(),
    clock: borrowing some Clock & ~Copyable, random: inout some RandomSource & ~Copyable
  ) throws(IssuanceFault) -> Issuance {
    guard let now = clock.unixSeconds() else { throw .noClock }
    var cryptography = OpenSSLCryptography()
    let claims: AttestationClaims
    do throws(JOSEFault) {
      claims = try open(token, using: &cryptography)
    } catch { return .refused(.attestation(error)) }
    let binding: Digest
    let baseline: Digest
    do throws(CryptographyFailure) {
      binding = try deviceBinding(device, using: &cryptography)
      baseline = try baselineDigest(claims.integrity, using: &cryptography)
    } catch { throw .writing(.cryptography) }
    if let refusal = refusal(of: claims, binding: binding, now: now) { return .refused(refusal) }
    let generation: UInt64
    do throws(LedgerFault) {
      if let refusal = try refusal(of: device) { return .refused(refusal) }
      guard try issued.bind(device.deviceID, to: binding) else { return .refused(.anotherKey) }
      guard try issued.claim(baseline, for: device.deviceID) else { return .refused(.baselineOfAnotherDevice) }
      generation = try issued.generation(of: device.deviceID)
    } catch { throw .ledger(error) }
    let measurement = try measurementClaims(
      claims, for: device, options: options, now: now, generation: generation, random: &random)
    do throws(TokenWritingFault) {
      let token = try MeasurementTokenWriter(format: options.format).write(
        measurement, to: device.publicKey.point, issuer: &issuer, random: &random, using: &cryptography)
      return .issued(IssuedToken(token, measurement))
    } catch { throw .writing(error) }
  }

  /// Raises the generation of a device: once it has seen a newer token, it refuses every older one.
  public mutating func revoke(_ device: DeviceID) throws(LedgerFault) -> UInt64 {
    try issued.raiseGeneration(of: device)
  }

  private mutating func open(
    _ token: Span<UInt8>, using cryptography: inout OpenSSLCryptography
  ) throws(JOSEFault) -> AttestationClaims {
    let signed = try encryption.open(token, contentType: "JWT")
    let payload = try signing.verify(signed.bytes, type: AttestationClaims.type, using: &cryptography)
    do throws(EncodingFault) {
      return try AttestationClaims.read(payload.bytes)
    } catch { throw JOSEFault(error) }
  }

  private func refusal(
    of claims: borrowing AttestationClaims, binding: Digest, now: UInt64
  ) -> IssuanceRefusal? {
    guard claims.issuer == policy.attestationIssuer else { return .issuer }
    guard claims.audience == policy.audience else { return .audience }
    guard claims.issuedAt < claims.expires, claims.issuedAt <= now + Self.skewSeconds else { return .notYetValid }
    guard claims.expires + Self.skewSeconds > now else { return .expired }
    guard claims.binding == binding else { return .anotherDevice }
    guard claims.subject != nil || policy.subject != nil else { return .unnamedApp }
    return nil
  }

  /// Why the owner's registry has no token for a device; nil where it has.
  private func refusal(of device: DeviceDescriptor) throws(LedgerFault) -> IssuanceRefusal? {
    let registered = try issued.registration(of: device.deviceID)
    if policy.devices == .listed, registered?.publicPoint == nil { return .unknownDevice }
    if let point = registered?.publicPoint, point != device.publicKey.point { return .anotherKey }
    return registered?.blocked == nil ? nil : .blockedDevice
  }
}
