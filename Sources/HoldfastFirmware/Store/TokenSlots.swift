import HoldfastCore

/// Opened tokens by reference, at most eight; the oldest goes first. Never written anywhere.
struct TokenSlots: ~Copyable {
  private var slots = Both<Both<Both<TokenSlot>>>()
  private var oldest = 0

  @inline(never)
  init() {}

  func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    slots.recall(reference, into: &token)
  }

  mutating func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    guard !slots.holds(reference) else { return }
    slots.fill(oldest, reference, token)
    oldest = (oldest + 1) % Both<Both<Both<TokenSlot>>>.capacity
  }
}

/// Room for one token, or for more.
private protocol TokenRoom: ~Copyable {
  static var capacity: Int { get }
  init()
  func holds(_ reference: TokenReference) -> Bool
  func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool
  mutating func fill(_ index: Int, _ reference: TokenReference, _ token: borrowing VerifiedToken)
}

private struct TokenSlot: ~Copyable, TokenRoom {
  private var reference: TokenReference?
  private var token = VerifiedToken()

  static var capacity: Int { 1 }

  // Unwrapped first: for a Cortex-M4, Swift 6.3 compiles `==` with an optional so that a token is never found again.
  func holds(_ reference: TokenReference) -> Bool {
    guard let known = self.reference else { return false }
    return known == reference
  }

  func recall(_ reference: TokenReference, into other: inout VerifiedToken) -> Bool {
    guard holds(reference) else { return false }
    other.set(token)
    return true
  }

  mutating func fill(_ index: Int, _ reference: TokenReference, _ token: borrowing VerifiedToken) {
    self.reference = reference
    self.token.set(token)
  }
}

/// Twice the room. Embedded Swift 6.3 cannot destroy an array of what has secrets in it.
private struct Both<Half: TokenRoom & ~Copyable>: ~Copyable, TokenRoom {
  private var first = Half()
  private var second = Half()

  static var capacity: Int { 2 * Half.capacity }

  func holds(_ reference: TokenReference) -> Bool { first.holds(reference) || second.holds(reference) }

  func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    first.recall(reference, into: &token) || second.recall(reference, into: &token)
  }

  mutating func fill(_ index: Int, _ reference: TokenReference, _ token: borrowing VerifiedToken) {
    if index < Half.capacity {
      first.fill(index, reference, token)
    } else {
      second.fill(index - Half.capacity, reference, token)
    }
  }
}
