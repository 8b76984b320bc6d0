import HoldfastCore
import Synchronization

/// A prover that carries mail, by its token.
package struct Courier: Sendable, Hashable {
  /// The key that signed the token; nil for an unsigned one.
  package let issuer: KeyID?
  /// The token's id (`jti`), 16 bytes.
  package let tokenID: TokenID
  /// The app that the token names (`sub`), at most 64 bytes.
  package let subject: BoundedText<64>
}

/// The numbers of what a device gave to a courier and took from it.
package struct CourierCounts: Sendable, Equatable {
  /// The pages of the audit log that the device gave.
  package var pages: UInt64 = 0
  /// The receipts that it took.
  package var receipts: UInt64 = 0
  /// The bulletins that it took.
  package var bulletins: UInt64 = 0

  fileprivate static func += (left: inout Self, right: Self) {
    left.pages += right.pages
    left.receipts += right.receipts
    left.bulletins += right.bulletins
  }
}

/// A courier with its counts, as the ledger keeps them.
package struct CourierRecord: Sendable, Equatable {
  /// The courier.
  package let courier: Courier
  /// The numbers of what was given and taken.
  package let counts: CourierCounts
  /// The time of the last mail, to a minute, in Unix seconds.
  package let last: UInt64
}

/// The counts of couriers that are not in the ledger yet. They are due a minute after the first one: a page of the audit log alone
/// writes nothing.
final class CourierCounter: Sendable {
  private static let intervalMilliseconds: UInt64 = 60_000
  private static let limit = 256

  private struct State {
    var counts: [Courier: CourierCounts] = [:]
    var since: UInt64?
  }

  private let state = Mutex(State())

  /// Adds to the counts of a courier. Beyond 256 couriers within a minute, further ones are not counted.
  func add(_ counts: CourierCounts, of courier: Courier) {
    state.withLock { state in
      guard state.counts[courier] != nil || state.counts.count < Self.limit else { return }
      state.counts[courier, default: CourierCounts()] += counts
    }
  }

  /// Takes the counts since the last time, once a minute has passed, or at once if `isForced`.
  func take(at milliseconds: UInt64, isForced: Bool) -> [Courier: CourierCounts] {
    state.withLock { state in
      guard !state.counts.isEmpty else { return [:] }
      let since = state.since ?? milliseconds
      state.since = since
      guard isForced || milliseconds >= since + Self.intervalMilliseconds else { return [:] }
      defer { state = State() }
      return state.counts
    }
  }
}
