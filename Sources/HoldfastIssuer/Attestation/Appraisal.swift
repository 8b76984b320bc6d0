import HoldfastCore

/// The attestation service's answer to evidence.
public enum Appraisal: Sendable, Equatable {
  /// The app is approved: the attestation token, and its response code for the log.
  case approved(token: [UInt8], responseCode: BoundedText<16>)
  /// It is not.
  case refused(AttestationRefusal)
}

/// Why an app is not approved: the first of these that applies.
public enum AttestationRefusal: Error, Equatable {
  /// The keys of its release are not registered.
  case unknownProofKey
  /// Not authenticated with the evidence key of the release that it names.
  case notAuthentic
  /// Its baseline was not taken within the last five minutes, or is ahead of the service's clock by more.
  case notFresh
  /// Components that every baseline has are missing.
  case incomplete
  /// Its image is none that is approved.
  case unknownImage
  /// It claims another name than its image has in the policy.
  case subject(claimed: BoundedText<64>, approved: BoundedText<64>)
  /// It claims another version than its image has in the policy.
  case version(claimed: AppVersion, approved: AppVersion)
  /// It was noticed to have a property that is refused.
  case property(BoundedText<32>)
  /// Its configuration was appraised before.
  case repeated
}

/// Why the service could not appraise.
public enum AttestationFault: Error, Equatable {
  /// The bytes are not evidence.
  case malformed
  /// There is no clock to judge freshness by.
  case noClock
  /// The durable record failed.
  case ledger(LedgerFault)
  /// libcrypto or the random source failed.
  case cryptography
}
