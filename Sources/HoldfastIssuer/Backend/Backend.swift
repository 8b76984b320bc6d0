import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A backend, which checks attestation tokens and issues measurement tokens.
///
/// Source: RFC 9334 §2.1, where its role is the *relying party*. Only one thread at a time may use it.
package struct Backend<Issued: IssuedBaselines & ~Copyable>: ~Copyable {
  var opener: AttestationOpener
  var issuer: IssuerSecrets<P256PrivateKey>
  /// The owner's rules.
  package let policy: ServicePolicy
  var issued: Issued

  /// Creates a backend.
  ///
  /// - Parameters:
  ///   - encryption: The key to which attestation tokens are encrypted.
  ///   - signing: The key that verifies their signatures.
  ///   - issuer: The keys that authenticate measurement tokens, and nothing else.
  ///   - policy: The owner's rules.
  ///   - issued: The durable record of the tokens issued.
  package init(
    encryption: consuming JWEKey, signing: consuming JWSKey, issuer: consuming IssuerSecrets<P256PrivateKey>,
    policy: ServicePolicy, issued: consuming Issued
  ) {
    opener = AttestationOpener(encryption: encryption, signing: signing)
    self.issuer = issuer
    self.policy = policy
    self.issued = issued
  }

  /// The public key that devices must trust.
  package var issuerKey: PublicKeyJWK { PublicKeyJWK(point: issuer.signing.publicPoint) }

  /// Issues a measurement token for `device` on the basis of an attestation token.
  ///
  /// The device that the baseline belongs to, the device's key and the record of the token are on the disk before the token is
  /// made. Otherwise anyone who got a token for the device encrypted to another key could read the measurements in it and
  /// encrypt it again to the device's key.
  ///
  /// - Parameters:
  ///   - token: The attestation token.
  ///   - device: The device for which the app was attested.
  ///   - hash: The digest of the app's data that the attestation token must be bound to, 32 bytes; nil for none.
  ///   - options: The properties of the measurement token.
  ///   - clock: The source of the present time.
  ///   - random: The source of the token's id and of its encryption.
  /// - Throws: The condition that prevents an answer; a refusal is not an error.
  package mutating func issue(
    attestation token: Span<UInt8>, for device: DeviceDescriptor, hash: Digest? = nil,
    options: IssuanceOptions = IssuanceOptions(),
    clock: borrowing some Clock & ~Copyable, random: inout some RandomSource & ~Copyable
  ) throws(IssuanceFault) -> Issuance {
    guard let now = clock.unixSeconds() else { throw .noClock }
    let attested: AttestedApp
    do throws(IssuanceRefusal) {
      attested = try opener.open(token, for: device, hash: hash, under: policy, now: now)
    } catch { return .refused(error) }
    let generation: UInt64
    do throws(ServiceLedgerFault) {
      if let refusal = try refusal(of: device) { return .refused(refusal) }
      guard try issued.bind(device.deviceID, to: attested.binding) else { return .refused(.anotherKey) }
      guard try issued.claim(attested.app.baseline, for: device.deviceID) else {
        return .refused(.baselineOfAnotherDevice)
      }
      generation = try issued.generation(of: device.deviceID)
    } catch { throw .ledger(error) }
    var cryptography = OpenSSLCryptography()
    let completed = options.completed(by: policy, for: attested.app, at: device.deviceID)
    let measurement: MeasurementClaims
    do throws(TokenWritingFault) {
      measurement = try MeasurementClaims.forToken(
        of: attested.app, from: policy.issuer, for: device.deviceID, options: completed, generation: generation,
        now: now, random: &random)
    } catch { throw .writing(error) }
    let record = IssuanceRecord(measurement, baseline: attested.app.baseline)
    do throws(ServiceLedgerFault) { try issued.record(record) } catch { throw .ledger(error) }
    do throws(TokenWritingFault) {
      let token = try MeasurementTokenWriter(format: options.format).write(
        measurement, to: device.publicKey.point, issuer: &issuer, random: &random, using: &cryptography)
      return .issued(
        try IssuedToken(token, measurement, conditions: completed.conditions, key: &issuer.signing))
    } catch { throw .writing(error) }
  }

  /// Raises the generation of a device and returns it. A device that has seen a newer token refuses every older one.
  package mutating func revoke(_ device: DeviceID) throws(ServiceLedgerFault) -> UInt64 {
    try issued.raiseGeneration(of: device)
  }

  /// Returns the reason why the owner's registry refuses a token for a device; nil if it does not.
  private func refusal(of device: DeviceDescriptor) throws(ServiceLedgerFault) -> IssuanceRefusal? {
    let registered = try issued.registration(of: device.deviceID)
    if policy.devices == .listed, registered?.publicPoint == nil { return .unknownDevice }
    if let point = registered?.publicPoint, point != device.publicKey.point { return .anotherKey }
    return registered?.blocked == nil ? nil : .blockedDevice
  }
}

/// The backend's answer to a request.
package enum Issuance: Sendable, Equatable {
  /// A measurement token was issued.
  case issued(IssuedToken)
  /// The request was refused, and nothing was issued.
  case refused(IssuanceRefusal)
}

/// The reasons why nothing was issued. The first that applies is reported.
package enum IssuanceRefusal: Error, Equatable {
  /// The attestation token does not decrypt, is not signed by the service, or is not well-formed; or the cryptographic library
  /// failed.
  case attestation(JOSEFault)
  /// The attestation token comes from another service.
  case issuer
  /// The attestation token is for another backend.
  case audience
  /// The attestation token is not valid yet, or its times are inconsistent.
  case notYetValid
  /// The attestation token has expired.
  case expired
  /// The app asked the attestation service for another device, or with other data.
  case anotherDevice
  /// The attestation token names no app, and the policy has no name for such apps.
  case unnamedApp
  /// The owner did not register the device, and the policy says `"devices": "listed"`.
  case unknownDevice
  /// The device is registered with another key, or the first token for it was issued for another key.
  case anotherKey
  /// The owner blocked the device.
  case blockedDevice
  /// The baseline was already used for another device, where a token with it would be valid too.
  case baselineOfAnotherDevice
}

/// The reasons why the backend could not answer.
package enum IssuanceFault: Error, Equatable {
  /// There is no clock.
  case noClock
  /// The durable record failed.
  case ledger(ServiceLedgerFault)
  /// The token could not be written.
  case writing(TokenWritingFault)
}
