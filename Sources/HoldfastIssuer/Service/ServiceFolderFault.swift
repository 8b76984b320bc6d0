import HoldfastStorage

/// Why a service folder cannot be made or used.
public enum ServiceFolderFault: Error, Equatable {
  /// A file is missing, is open to others, or cannot be read or written.
  case file(FileError)
  /// The making of the folder did not end: it has to be made again.
  case halfMade
  /// A key file does not hold what its name says.
  case key(ServiceFile)
  /// `policy.json` is not a policy.
  case policy(ServicePolicyFault)
  /// One key serves two purposes.
  case sharedKey
  /// A durable record cannot be opened.
  case ledger(LedgerFault)
  /// libcrypto or the random source failed.
  case cryptography
}

/// The files of a service folder, all of mode 0600.
public enum ServiceFile: String, Sendable, CaseIterable {
  /// The account secret, 32 bytes.
  case account = "account.key"
  /// The ES256 attestation key, a scalar of 32 bytes; without it, attestation tokens are signed with the account secret.
  case attestation = "attestation.key"
  /// The backend's key for attestation tokens: a private JWK with `alg` and `enc`.
  case attestationEncryption = "attestation-encryption.jwk"
  /// The issuer's signing key, a scalar of 32 bytes.
  case issuer = "issuer.key"
  /// What the keys that the issuer shares with devices follow from, 32 bytes; not there where it shares none.
  case mac = "mac.key"
  /// The keys of the releases, 48 bytes each: measurement proof key and evidence key.
  case releaseKeys = "release.keys"
  /// The policy.
  case policy = "policy.json"
  /// What the attestation service remembers.
  case attestationLedger = "attestation.sqlite"
  /// What the backend remembers.
  case issuerLedger = "issuer.sqlite"
}
