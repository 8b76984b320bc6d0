import HoldfastCore

/// An index of the newest item about each subject, as an offset into the slot in force; 0 for none.
package struct StoreIndex: ~Copyable {
  package var kept = InlineArray<64, ReplayIndexEntry>(repeating: ReplayIndexEntry())
  package var users = InlineArray<16, UserPlace>(repeating: UserPlace())
  package var codes = InlineArray<16, UInt16>(repeating: 0)
  package var generations = InlineArray<16, UInt16>(repeating: 0)
  package var requests = InlineArray<64, UInt16>(repeating: 0)
  /// The outcome of the request with the highest number at each place; nil if it is unknown.
  package var outcomes = InlineArray<64, Status?>(repeating: nil)
  /// The list of revoked tokens.
  package var revoked: UInt16 = 0
  private let pin = Pinned()

  @inline(never)
  package init() {}

  package var userCount: Int {
    var count = 0
    for index in users.indices where users[index].item != 0 { count += 1 }
    return count
  }

  /// The number of use counts and nonces. It is counted through a span, because Swift 6.3 would otherwise copy the whole
  /// array for each element.
  package var keptCount: Int {
    var count = 0
    let places = kept.span
    for index in places.indices where places[index].item != 0 { count += 1 }
    return count
  }

  /// Drops the entries of tokens that have expired by the clock floor and can never count again.
  package mutating func dropOutdated(clockFloor: UInt64) {
    for index in kept.indices where kept[index].item != 0 && kept[index].isOutdated(clockFloor: clockFloor) {
      kept[index] = ReplayIndexEntry()
    }
  }
}

/// The place of a use count or a nonce.
package struct ReplayIndexEntry {
  /// The token's `exp`, in Unix seconds, as its upper and its lower half. They take four bytes less than one `UInt64`.
  private var expires: (UInt32, UInt32) = (0, 0)
  /// The first two bytes of the token's id. They save decoding most other items.
  package private(set) var tag: UInt16 = 0
  package var item: UInt16 = 0

  package init() {}

  package init(item: UInt16, _ kept: ReplayRecord) {
    self.item = item
    expires = (UInt32(kept.expires >> 32), UInt32(truncatingIfNeeded: kept.expires))
    tag = Self.tag(of: kept.tokenID)
  }

  package static func tag(of tokenID: TokenID) -> UInt16 {
    UInt16(tokenID[0]) << 8 | UInt16(tokenID[1])
  }

  package func isOutdated(clockFloor: UInt64) -> Bool { UInt64(expires.0) << 32 | UInt64(expires.1) <= clockFloor }
}

/// The place of a user, and of the user's secrets by purpose.
package struct UserPlace {
  package var item: UInt16 = 0
  package var secrets = InlineArray<3, UInt16>(repeating: 0)
}

/// The opened tokens by reference, at most eight, in memory only. A new one replaces the oldest.
package struct TokenSlots: ~Copyable {
  private var slots = Both<Both<Both<TokenSlot>>>()
  private var oldest = 0

  /// The number of tokens for which there is room.
  package static var capacity: Int { Both<Both<Both<TokenSlot>>>.capacity }

  @inline(never)
  package init() {}

  package func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    slots.recall(reference, into: &token)
  }

  package mutating func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    guard !slots.holds(reference) else { return }
    slots.fill(oldest, reference, token)
    oldest = (oldest + 1) % Self.capacity
  }
}

/// Storage for one token or several.
private protocol TokenRoom: ~Copyable {
  static var capacity: Int { get }
  init()
  func holds(_ reference: TokenReference) -> Bool
  func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool
  mutating func fill(_ index: Int, _ reference: TokenReference, _ token: borrowing AuthenticatedToken)
}

private struct TokenSlot: ~Copyable, TokenRoom {
  private var reference: TokenReference?
  private var token = AuthenticatedToken()

  static var capacity: Int { 1 }

  // The optional is unwrapped first: for a Cortex-M4, Swift 6.3 miscompiles `==` with an optional, and no token is ever
  // found.
  func holds(_ reference: TokenReference) -> Bool {
    guard let known = self.reference else { return false }
    return known == reference
  }

  func recall(_ reference: TokenReference, into other: inout AuthenticatedToken) -> Bool {
    guard holds(reference) else { return false }
    other.set(token)
    return true
  }

  mutating func fill(_ index: Int, _ reference: TokenReference, _ token: borrowing AuthenticatedToken) {
    self.reference = reference
    self.token.set(token)
  }
}

/// Storage for twice as many tokens. Embedded Swift 6.3 cannot destroy an array of elements that hold secrets.
private struct Both<Half: TokenRoom & ~Copyable>: ~Copyable, TokenRoom {
  private var first = Half()
  private var second = Half()

  static var capacity: Int { 2 * Half.capacity }

  func holds(_ reference: TokenReference) -> Bool { first.holds(reference) || second.holds(reference) }

  func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    first.recall(reference, into: &token) || second.recall(reference, into: &token)
  }

  mutating func fill(_ index: Int, _ reference: TokenReference, _ token: borrowing AuthenticatedToken) {
    if index < Half.capacity {
      first.fill(index, reference, token)
    } else {
      second.fill(index - Half.capacity, reference, token)
    }
  }
}
