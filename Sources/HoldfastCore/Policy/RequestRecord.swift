/// The request numbers that a device accepted with one token: the highest, and which of the 64 below it.
///
/// A request whose number was accepted before, or lies below the window, is never carried out again.
/// Source: RFC 4303 §3.4.3, the anti-replay window of IPsec.
public struct RequestRecord: Sendable, Equatable {
  /// How many numbers below the highest one the window covers.
  public static var windowLength: UInt64 { 64 }

  /// The highest number that was accepted, at most 2^53 - 1.
  public let highest: UInt64
  /// The numbers below ``highest``: bit n is set if `highest - 1 - n` was accepted.
  public let window: UInt64
  /// Identifies the command and the parameters of the request with the highest number: see ``Round/requestDigest``.
  public let digest: FixedBytes<16>
  /// `accepted` if the actuator carried that request out, `internal` if it failed; nil as long as neither is known.
  public var outcome: Status?

  /// A record that a store kept.
  public init(highest: UInt64, window: UInt64, digest: FixedBytes<16>, outcome: Status?) {
    (self.highest, self.window, self.digest, self.outcome) = (highest, window, digest, outcome)
  }

  /// The record of a token's first request that has a number.
  init(first number: UInt64, digest: FixedBytes<16>) {
    self.init(highest: number, window: 0, digest: digest, outcome: nil)
  }

  /// Whether `number` was accepted before, or lies below the window.
  public func covers(_ number: UInt64) -> Bool {
    guard number <= highest else { return false }
    let distance = highest - number
    guard distance > 0 else { return true }
    return distance > Self.windowLength || window >> (distance - 1) & 1 == 1
  }

  /// The record once `number`, which it does not cover, was accepted.
  func accepting(_ number: UInt64, digest: FixedBytes<16>) -> RequestRecord {
    guard number > highest else {
      return RequestRecord(
        highest: highest, window: window | 1 << (highest - number - 1), digest: self.digest, outcome: outcome)
    }
    let distance = number - highest
    // Shifts by 64 and more give 0.
    return RequestRecord(
      highest: number, window: window << distance | 1 << (distance - 1), digest: digest, outcome: nil)
  }
}

extension Decision {
  /// A request whose number was accepted before, or is too old to tell, is answered from the record and not carried out.
  static func checkNumber(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    guard let number = round.requestNumber, let record = ledger.request, record.covers(number) else { return nil }
    var denial = Denial(status: .internal)
    denial.notice.highestRequestNumber = record.highest
    if number == record.highest, record.digest != round.requestDigest {
      denial.status = .commandRefused
      denial.notice.refusal = .anotherCommand
    } else if ledger.isActing {
      denial.status = .busy
    } else if number == record.highest, let outcome = record.outcome {
      denial.status = outcome
    }
    return denial
  }

  /// Records the number of a round that was accepted.
  mutating func keepNumber(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) {
    guard let number = round.requestNumber else { return }
    request =
      ledger.request?.accepting(number, digest: round.requestDigest)
      ?? RequestRecord(first: number, digest: round.requestDigest)
  }
}

/// Identifies a numbered request: the token that it came with, and its number.
public struct RequestIdentity: Sendable, Hashable {
  /// The key that signed or authenticated the token; nil for an unsigned one.
  public let verifyingKey: KeyID?
  public let tokenID: TokenID
  public let number: UInt64

  init(_ token: borrowing VerifiedToken, number: UInt64) {
    (verifyingKey, tokenID, self.number) = (token.verifyingKey, token.claims.tokenID, number)
  }

  /// The request of `round`; nil for one without a number.
  public init?(_ round: borrowing Round) {
    guard let number = round.requestNumber else { return nil }
    (verifyingKey, tokenID, self.number) = (round.verifyingKey, round.tokenID, number)
  }
}
