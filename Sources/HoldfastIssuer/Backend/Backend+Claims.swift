import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL

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
