import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// Checks attestation tokens and issues measurement tokens.
///
/// Source: RFC 9334 §2.1 (the *relying party* there). Used by one thread at a time.
package struct Backend<Issued: IssuedBaselines & ~Copyable>: ~Copyable {
  var encryption: JWEKey
  let signing: JWSKey
  var issuer: IssuerSecrets
  package let policy: ServicePolicy
  var issued: Issued

  /// - Parameters:
  ///   - encryption: the key to which attestation tokens are encrypted.
  ///   - signing: what verifies their signature.
  ///   - issuer: vouches for measurement tokens, and for nothing else.
  package init(
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
  package var issuerKey: PublicKeyJWK { PublicKeyJWK(point: issuer.signing.publicPoint) }

  /// How far clocks may differ.
  static var skewSeconds: UInt64 { 30 }

  /// Issues a measurement token for `device` on the strength of an attestation token.
  ///
  /// That the baseline is this device's, and the key too, is on the disk before the token is made: who got a token for a
  /// device encrypted to a key of his own would read the measurements in it, and could encrypt it anew to the device's.
  package mutating func issue(
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
  package mutating func revoke(_ device: DeviceID) throws(LedgerFault) -> UInt64 {
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

extension Backend where Issued: ~Copyable {
  /// What the measurement token says.
  func measurementClaims(
    _ attestation: borrowing AttestationClaims, for device: DeviceDescriptor, options: IssuanceOptions, now: UInt64,
    generation: UInt64, random: inout some RandomSource & ~Copyable
  ) throws(IssuanceFault) -> MeasurementClaims {
    let tokenID: TokenID
    do throws(RandomFailure) { tokenID = try random.fixedBytes() } catch { throw .writing(.cryptography) }
    return MeasurementClaims(
      issuer: policy.issuer, subject: attestation.subject ?? policy.subject ?? BoundedText(), audience: device.deviceID,
      expires: now + min(options.validitySeconds ?? policy.tokenSeconds, maximumInteger - min(now, maximumInteger)),
      issuedAt: now, tokenID: tokenID, integrity: attestation.integrity.copy(), device: attestation.device.copy(),
      proofKey: attestation.proofKey.copy(), generation: generation,
      maximumUses: options.maximumUses ?? policy.maximumUses,
      commands: try commandList(options.commands ?? policy.commands), version: attestation.version ?? .zero,
      user: options.user)
  }

  private func commandList(_ commands: [BoundedText<32>]?) throws(IssuanceFault) -> CommandList? {
    guard let commands else { return nil }
    var list = CommandList()
    for command in commands {
      do throws(EncodingFault) { try list.append(command) } catch { throw .tooManyCommands }
    }
    return list
  }
}

/// What is remembered of a baseline: its measurement does not follow from it.
func baselineDigest(
  _ integrity: borrowing Secret<32>, using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Digest {
  var hash = cryptography.sha256()
  hash.append(domain: "holdfast/1 issued baseline")
  integrity.withBytes { hash.append($0) }
  return try hash.finish()
}

/// Wishes that come with an attestation token; for those that are nil, the backend's policy decides.
package struct IssuanceOptions: Sendable {
  /// How the measurement token is written.
  package var format: MeasurementTokenFormat = .cose
  /// How long it is valid.
  package var validitySeconds: UInt64?
  /// `cmd`: what it may do.
  package var commands: [BoundedText<32>]?
  /// `max`: how many rounds may be accepted.
  package var maximumUses: UInt64?
  /// `usr`: whose codes go with it.
  package var user: BoundedText<32>?

  package init() {}
}

/// What the backend makes of a request.
package enum Issuance: Sendable, Equatable {
  /// The measurement token, and what it says.
  case issued(IssuedToken)
  /// Nothing was issued.
  case refused(IssuanceRefusal)
}

/// A measurement token, with those of its claims that the prover may know. It cannot read them in the token, which is
/// encrypted to the device.
package struct IssuedToken: Sendable, Equatable {
  /// The token, as its format has it.
  package let bytes: [UInt8]
  /// `iss` and `sub`.
  package let issuer: BoundedText<64>
  package let subject: BoundedText<64>
  /// `jti`.
  package let id: TokenID
  /// `iat` and `exp`, in Unix seconds.
  package let issuedAt: UInt64
  package let expires: UInt64
  /// `gen`.
  package let generation: UInt64
  /// `max`; nil for any number of rounds.
  package let maximumUses: UInt64?
  /// `cmd`; nil for all that the device's policy allows.
  package let commands: [BoundedText<32>]?
  /// `ver`.
  package let version: AppVersion
  /// `usr`; nil for any user.
  package let user: BoundedText<32>?

  /// A token, and the claims that were written into it.
  init(_ bytes: [UInt8], _ claims: borrowing MeasurementClaims) {
    self.bytes = bytes
    (issuer, subject, id) = (claims.issuer, claims.subject, claims.tokenID)
    (issuedAt, expires, generation) = (claims.issuedAt, claims.expires, claims.generation)
    (maximumUses, version, user) = (claims.maximumUses, claims.version, claims.user)
    switch claims.commands {
    case nil: commands = nil
    case .some(let list):
      var names: [BoundedText<32>] = []
      for index in 0..<list.count { names.append(list[index]) }
      commands = names
    }
  }
}

/// Why nothing was issued: the first of these that applies.
package enum IssuanceRefusal: Sendable, Equatable {
  /// The attestation token does not open, is not signed by the service, or is none.
  case attestation(JOSEFault)
  /// Another service's.
  case issuer
  /// For another backend.
  case audience
  /// It is not valid yet, or its times make no sense.
  case notYetValid
  /// It was valid once.
  case expired
  /// The app asked the service for another device.
  case anotherDevice
  /// The attestation token names no app, and the policy has no name for such apps.
  case unnamedApp
  /// The owner did not register the device, and the policy says `"devices": "listed"`.
  case unknownDevice
  /// The device is registered with another key, or had another key when the first token for it was issued.
  case anotherKey
  /// The owner blocked the device.
  case blockedDevice
  /// The baseline was given to another device: there, this one's token would prove as well.
  case baselineOfAnotherDevice
}

/// Why the backend could not answer.
package enum IssuanceFault: Error, Equatable {
  /// There is no clock.
  case noClock
  /// More commands than a token carries.
  case tooManyCommands
  /// The durable record failed.
  case ledger(LedgerFault)
  /// The token could not be written.
  case writing(TokenWritingFault)
}
