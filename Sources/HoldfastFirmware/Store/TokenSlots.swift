import HoldfastCore

/// Opened tokens by reference, at most eight; the oldest goes first. Never written anywhere.
struct TokenSlots: ~Copyable {
  private var slots = InlineArray<8, TokenSlot> { _ in TokenSlot() }
  private var oldest = 0

  init() {}

  func recall(_ reference: TokenReference) -> VerifiedToken? {
    for index in slots.indices where slots[index].reference == reference { return slots[index].copy() }
    return nil
  }

  mutating func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    for index in slots.indices where slots[index].reference == reference { return }
    slots[oldest].fill(reference, token)
    oldest = (oldest + 1) % slots.count
  }
}

private struct TokenSlot: ~Copyable {
  private(set) var reference: TokenReference?
  private var token: VerifiedToken?

  init() {}

  func copy() -> VerifiedToken? { token?.copy() }

  mutating func fill(_ reference: TokenReference, _ token: borrowing VerifiedToken) {
    self.reference = reference
    self.token = token.copy()
  }
}
