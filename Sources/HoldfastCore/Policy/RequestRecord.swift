/// The request numbers that a device accepted with one token: the highest one, and those among the 64 below it.
///
/// The device never carries out a request whose number was accepted before or lies below the window.
/// Source: RFC 4303 §3.4.3, the anti-replay window of IPsec.
public struct RequestRecord: Sendable, Equatable {
  /// The number of request numbers below the highest one that the window covers.
  public static var windowLength: UInt64 { 64 }

  /// The highest number that was accepted, at most 2^53 - 1.
  public let highest: UInt64
  /// The numbers below ``highest``: bit n is set if `highest - 1 - n` was accepted.
  public let window: UInt64
  /// The digest that identifies the command and the parameters of the request with the highest number: see
  /// ``AppraisalInput/requestDigest``.
  public let digest: FixedBytes<16>
  /// The latest `exp` with which the token came, in Unix seconds. The record counts until the clock floor reaches it.
  public let expires: UInt64
  /// The outcome of that request: `accepted` if the actuator carried it out, `internal` if it failed, `sealRejected` if the
  /// user refused it, nil while none is known.
  public var outcome: Status?

  /// Creates a record from the parts that a store kept.
  public init(highest: UInt64, window: UInt64, digest: FixedBytes<16>, expires: UInt64, outcome: Status?) {
    (self.highest, self.window, self.digest, self.expires, self.outcome) = (highest, window, digest, expires, outcome)
  }

  /// Creates the record of a token's first request that has a number.
  public init(first number: UInt64, digest: FixedBytes<16>, expires: UInt64) {
    self.init(highest: number, window: 0, digest: digest, expires: expires, outcome: nil)
  }

  /// Returns whether `number` was accepted before, or lies below the window. A record that the clock floor has reached
  /// covers nothing: a token with the same id may come again.
  public func covers(_ number: UInt64, clockFloor: UInt64) -> Bool {
    guard expires > clockFloor, number <= highest else { return false }
    let distance = highest - number
    guard distance > 0 else { return true }
    return distance > Self.windowLength || window >> (distance - 1) & 1 == 1
  }

  /// Returns the record after the acceptance of `number`, which it does not cover, in a round whose token expires at
  /// `expires`. The record of a token that comes again with a later `exp` counts until the later time.
  package func accepting(_ number: UInt64, digest: FixedBytes<16>, expires: UInt64) -> RequestRecord {
    let latest = max(self.expires, expires)
    guard number > highest else {
      return RequestRecord(
        highest: highest, window: window | 1 << (highest - number - 1), digest: self.digest, expires: latest,
        outcome: outcome)
    }
    let distance = number - highest
    // Shifts by 64 and more give 0.
    return RequestRecord(
      highest: number, window: window << distance | 1 << (distance - 1), digest: digest, expires: latest, outcome: nil)
  }
}

/// The identity of a numbered request: the token that it came with, and its number.
public struct RequestIdentity: Sendable, Hashable {
  /// The key that signed or authenticated the token; nil for an unsigned one.
  public let verifyingKey: KeyID?
  /// The token's id (`jti`), 16 bytes.
  public let tokenID: TokenID
  /// The number of the request, at most 2^53 - 1.
  public let number: UInt64

  init(_ token: borrowing AuthenticatedToken, number: UInt64) {
    (verifyingKey, tokenID, self.number) = (token.verifyingKey, token.claims.tokenID, number)
  }

  /// Takes the identity of the request of `round`; nil for a request without a number.
  public init?(_ round: borrowing AppraisalInput) {
    guard let number = round.requestNumber else { return nil }
    (verifyingKey, tokenID, self.number) = (round.verifyingKey, round.tokenID, number)
  }
}
