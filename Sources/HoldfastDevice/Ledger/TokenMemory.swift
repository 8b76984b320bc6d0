import HoldfastCore
import Synchronization

/// Opened tokens by reference, at most 4096; the oldest goes first. Shared by all connections, and never written anywhere.
package final class TokenMemory: Sendable {
  /// How many tokens a host remembers.
  package static let usualCapacity = 4096

  private let capacity: Int
  private let state = Mutex(State())

  private struct State {
    var tokens: [TokenReference: RememberedToken] = [:]
    /// The references in the order in which they came; once full, a ring.
    var order: [TokenReference] = []
    /// Where the oldest stands in a full ring.
    var oldest = 0
  }

  package init(capacity: Int = TokenMemory.usualCapacity) {
    self.capacity = max(capacity, 1)
  }

  /// How many are remembered.
  package var count: Int {
    state.withLock { $0.tokens.count }
  }

  /// Makes `token` a copy of the one remembered under `reference`; false, and nothing changes, when there is none.
  package func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    guard let remembered = state.withLock({ $0.tokens[reference] }) else { return false }
    token.set(remembered.token)
    return true
  }

  /// Remembers a copy of `token`.
  package func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    let remembered = RememberedToken(token.copy())
    state.withLock { state in
      guard state.tokens.updateValue(remembered, forKey: reference) == nil else { return }
      if state.order.count < capacity {
        state.order.append(reference)
      } else {
        state.tokens[state.order[state.oldest]] = nil
        state.order[state.oldest] = reference
        state.oldest = (state.oldest + 1) % capacity
      }
    }
  }
}

/// Keeps a token in one place on the heap; its secrets are wiped with it.
private final class RememberedToken: Sendable {
  let token: VerifiedToken

  init(_ token: consuming VerifiedToken) {
    self.token = token
  }
}
