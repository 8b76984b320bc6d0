import HoldfastCore

/// What the backend may be told beside an attestation token; what is nil comes from its policy.
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
  /// The measurement token, its id and its times.
  case issued(token: [UInt8], id: TokenID, expires: UInt64, generation: UInt64)
  /// Nothing was issued.
  case refused(IssuanceRefusal)
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
  /// The device had another key when the first token for it was issued.
  case anotherKey
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
