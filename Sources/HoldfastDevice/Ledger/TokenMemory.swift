import HoldfastCore
import Synchronization

/// A memory of opened tokens by reference, with a limited capacity; a new one replaces the oldest. All connections share it,
/// and it is never written anywhere.
package final class TokenMemory: Sendable {
  /// The default capacity, in tokens.
  package static let usualCapacity = Limit.rememberedTokens.linux

  private let capacity: Int
  private let state = Mutex(State())

  private struct State {
    var tokens: [TokenReference: RememberedToken] = [:]
    /// The references in the order in which the tokens were added; once full, a ring.
    var order: [TokenReference] = []
    /// The index of the oldest reference in a full ring.
    var oldest = 0
  }

  /// Makes an empty memory for `capacity` tokens, at least one.
  package init(capacity: Int = TokenMemory.usualCapacity) {
    self.capacity = max(capacity, 1)
  }

  /// The number of remembered tokens.
  package var count: Int {
    state.withLock { $0.tokens.count }
  }

  /// Copies the token that is remembered under `reference` into `token`. Returns false, and changes nothing, if there is
  /// none.
  package func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    guard let remembered = state.withLock({ $0.tokens[reference] }) else { return false }
    token.set(remembered.token)
    return true
  }

  /// Remembers a copy of `token`. A token that is remembered under that reference already is replaced, but keeps its age.
  package func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
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

/// A token in one place on the heap. Its secrets are wiped when it is released.
private final class RememberedToken: Sendable {
  let token: AuthenticatedToken

  init(_ token: consuming AuthenticatedToken) {
    self.token = token
  }
}
