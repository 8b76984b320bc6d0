import HoldfastCore

/// Wishes that come with an attestation token; for those that are nil, the backend's policy decides.
public struct IssuanceOptions: Sendable {
  /// How the measurement token is written.
  public var format: MeasurementTokenFormat = .cose
  /// How long it is valid.
  public var validitySeconds: UInt64?
  /// `cmd`: what it may do.
  public var commands: [BoundedText<32>]?
  /// `max`: how many rounds may be accepted.
  public var maximumUses: UInt64?
  /// `usr`: whose codes go with it.
  public var user: BoundedText<32>?

  public init() {}
}

/// What the backend makes of a request.
public enum Issuance: Sendable, Equatable {
  /// The measurement token, and what it says.
  case issued(IssuedToken)
  /// Nothing was issued.
  case refused(IssuanceRefusal)
}

/// A measurement token, with those of its claims that the prover may know. It cannot read them in the token, which is
/// encrypted to the device.
public struct IssuedToken: Sendable, Equatable {
  /// The token, as its format has it.
  public let bytes: [UInt8]
  /// `iss` and `sub`.
  public let issuer: BoundedText<64>
  public let subject: BoundedText<64>
  /// `jti`.
  public let id: TokenID
  /// `iat` and `exp`, in Unix seconds.
  public let issuedAt: UInt64
  public let expires: UInt64
  /// `gen`.
  public let generation: UInt64
  /// `max`; nil for any number of rounds.
  public let maximumUses: UInt64?
  /// `cmd`; nil for all that the device's policy allows.
  public let commands: [BoundedText<32>]?
  /// `ver`.
  public let version: AppVersion
  /// `usr`; nil for any user.
  public let user: BoundedText<32>?

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
public enum IssuanceRefusal: Sendable, Equatable {
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
public enum IssuanceFault: Error, Equatable {
  /// There is no clock.
  case noClock
  /// More commands than a token carries.
  case tooManyCommands
  /// The durable record failed.
  case ledger(LedgerFault)
  /// The token could not be written.
  case writing(TokenWritingFault)
}
