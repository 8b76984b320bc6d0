import HoldfastCore

/// The memory of an issuer, in a database or a folder of your own.
///
/// One type conforms to all three protocols, with one type of error. The issuer calls it from every thread that issues. When a
/// function throws, nothing is issued.
public typealias IssuerStore = ApprovedImages & DeviceDirectory & IssuanceRecords

/// The executables that an issuer approves.
public protocol ApprovedImages: Sendable {
  /// The error of a store that could not be read or written.
  associatedtype Failure: Error

  /// Returns the approval of an executable, with the keys of its release.
  ///
  /// - Parameter image: SHA-256 of the executable, 32 bytes. Anyone may have chosen it.
  /// - Returns: Nil if the executable is not approved.
  func approval(of image: Digest) throws(Failure) -> ImageApproval?

  /// Returns the approval of an executable by its tree digest, with the keys of its release.
  ///
  /// - Parameter tree: the tree digest of the executable, 32 bytes. Anyone may have chosen it. It must not be compared with SHA-256 of
  ///   executables.
  /// - Returns: Nil if the executable is not approved, or not in this form, as it is by default.
  func approval(ofTree tree: Digest) throws(Failure) -> ImageApproval?
}

extension ApprovedImages {
  /// Approves no executable by its tree digest.
  public func approval(ofTree tree: Digest) throws(Failure) -> ImageApproval? { nil }

  /// Returns the approval of an executable in the form that its evidence has.
  func approval(of image: ImageDigest) throws(Failure) -> ImageApproval? {
    switch image {
    case .flat(let digest): try approval(of: digest)
    case .tree(let digest): try approval(ofTree: digest)
    }
  }
}

/// The devices for which an issuer issues tokens.
public protocol DeviceDirectory: Sendable {
  /// The error of a store that could not be read or written.
  associatedtype Failure: Error

  /// Returns whether tokens may be issued for a device, and its key.
  ///
  /// The key must come from the device's owner. A token encrypted to another key would reveal the measurements in it.
  func standing(of device: DeviceID) throws(Failure) -> DeviceStanding
}

/// Whether tokens may be issued for a device.
public enum DeviceStanding: Sendable, Equatable {
  /// The owner did not register the device.
  case unknown
  /// The owner registered the device with this public key.
  case registered(P256Point)
  /// The owner wants no more tokens for the device.
  case blocked
}

/// The record of what an issuer issued.
public protocol IssuanceRecords: Sendable {
  /// The error of a store that could not be read or written.
  associatedtype Failure: Error

  /// Returns the generation of a device's next token (claim `gen`): 1 at first, at most 2^53 - 1. A device that has seen a token
  /// of a higher generation refuses the older ones, so raising it revokes them.
  func generation(of device: DeviceID) throws(Failure) -> UInt64

  /// Durably records a token before it is made.
  ///
  /// The record is on the disk when the function returns. Of any number of calls with one baseline, in any number of processes
  /// and before or after a crash, exactly one returns true.
  ///
  /// - Returns: False, and nothing changes, if there is a record with the same ``IssuanceRecord/baseline``.
  func insert(_ record: IssuanceRecord) throws(Failure) -> Bool
}

/// The record of a token that an issuer keeps. It contains no secret.
public struct IssuanceRecord: Sendable, Equatable {
  /// The digest that identifies the app's baseline, 32 bytes.
  public let baseline: Digest
  /// The device that the token is for.
  public let device: DeviceID
  /// The id of the token (claim `jti`), 16 bytes, by which a bulletin revokes it. The prover does not learn it.
  public let tokenID: TokenID
  /// The approved app (claim `sub`).
  public let subject: BoundedText<64>
  /// The version of the app (claim `ver`).
  public let version: AppVersion
  /// The user to whom the token is bound (claim `usr`); nil for none.
  public let user: BoundedText<32>?
  /// The generation (claim `gen`).
  public let generation: UInt64
  /// The time of issue, in Unix seconds (claim `iat`).
  public let issuedAt: UInt64
  /// The time at which the token expires, in Unix seconds (claim `exp`).
  public let expires: UInt64

  /// Creates the record of a token with these claims.
  init(_ claims: borrowing MeasurementClaims, baseline: Digest) {
    self.baseline = baseline
    (device, tokenID) = (claims.audience, claims.tokenID)
    (subject, version, user, generation) = (claims.subject, claims.version, claims.user, claims.generation)
    (issuedAt, expires) = (claims.issuedAt, claims.expires)
  }

  /// Creates a record from its fields.
  package init(
    baseline: Digest, device: DeviceID, tokenID: TokenID, subject: BoundedText<64>, version: AppVersion,
    user: BoundedText<32>?, generation: UInt64, issuedAt: UInt64, expires: UInt64
  ) {
    (self.baseline, self.device, self.tokenID) = (baseline, device, tokenID)
    (self.subject, self.version, self.user, self.generation) = (subject, version, user, generation)
    (self.issuedAt, self.expires) = (issuedAt, expires)
  }
}
