import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastStorage

// A device that a bulletin tells of the end of a key takes no later bulletin under that key. So the end is the last word of the key's
// chain: it replaces the chain, needs no bulletin before it, and introduces again what the key introduced. A device that does not let the
// key introduce others refuses the whole bulletin, and keeps the key: no device loses the old key without the new one.

/// An operator's order about a key of the service: that devices are to trust it, to trust it no more, or the one after the other.
struct KeyOrder {
  /// The device or the group.
  let audience: AudienceID
  /// The key.
  let id: KeyID
  /// The introduction; nil if the service did not introduce the key to this audience.
  let introduction: Introduction?
  /// Whether the key is to end.
  let isEnded: Bool

  /// The introduction of a key by another one.
  struct Introduction: Equatable {
    /// The key that signs the introduction.
    let introducer: KeyID
    /// The introduced key, with the times of its trust.
    let key: IntroducedKey
  }
}

/// The statement of a bulletin about one key.
struct KeyStatement: Equatable {
  /// The key with the times of its trust; nil if the bulletin does not introduce it.
  var introduced: IntroducedKey?
  /// Whether the key ends.
  var isEnded: Bool
  /// The time from which no device trusts the key anyway, in Unix seconds; 2^53 - 1 if that is not known.
  let until: UInt64

  /// Returns the statement of a bulletin that says what this one and a later one say.
  func merged(with next: KeyStatement) -> KeyStatement {
    KeyStatement(
      introduced: next.introduced ?? introduced, isEnded: isEnded || next.isEnded, until: max(until, next.until))
  }
}

/// The orders about keys for an audience, and for the groups of a device.
struct KeyOrders {
  private let audience: AudienceID
  /// All orders.
  let all: [KeyOrder]
  /// The keys that end for any of these audiences: a device takes no more bulletins under them.
  let ended: Set<KeyID>

  /// Creates orders.
  ///
  /// - Parameters:
  ///   - all: The orders for an audience, and for the groups of a device.
  ///   - audience: The audience.
  init(_ all: [KeyOrder], for audience: AudienceID) {
    (self.all, self.audience) = (all, audience)
    ended = Set(all.filter(\.isEnded).map(\.id))
  }

  /// The order about a key for the audience itself.
  func order(about key: KeyID) -> KeyOrder? { all.first { $0.id == key && $0.audience == audience } }

  /// Returns the introductions by a key for the audience itself that are not over at a time, in Unix seconds.
  func introductions(by introducer: KeyID, after time: UInt64) -> [KeyOrder] {
    all.filter { $0.audience == audience && $0.isIntroduced(by: introducer, after: time) }
  }

  /// Returns the last word of a key: its end, and what it introduced.
  ///
  /// - Parameters:
  ///   - key: The key that ends.
  ///   - said: What its bulletins for the audience say about keys.
  ///   - time: The present time, in Unix seconds.
  func lastWord(of key: KeyID, said: [KeyID: KeyStatement], at time: UInt64) -> [KeyID: KeyStatement] {
    // Nobody takes the key's bulletins for the groups of a device after its end here.
    var statements: [KeyID: KeyStatement] = [:]
    for order in all where order.id != key && order.isIntroduced(by: key, after: time) {
      guard let introduced = order.introduction?.key else { continue }
      if !ended.contains(order.id) {
        statements[order.id] = KeyStatement(introduced: introduced, isEnded: false, until: introduced.until)
      } else if said[order.id]?.introduced != nil {
        statements[order.id] = KeyStatement(introduced: nil, isEnded: true, until: introduced.until)
      }
    }
    statements[key] = KeyStatement(introduced: nil, isEnded: true, until: maximumInteger)
    return statements
  }

  /// Returns the orders that bulletins of a key for the audience have to say, as far as they do not say them.
  ///
  /// - Parameters:
  ///   - key: The key that introduced others, and has not ended.
  ///   - said: What its bulletins for the audience say about keys.
  ///   - time: The present time, in Unix seconds.
  func unsaid(by key: KeyID, said: [KeyID: KeyStatement], at time: UInt64) -> [KeyID: KeyStatement] {
    var statements: [KeyID: KeyStatement] = [:]
    for order in introductions(by: key, after: time) {
      guard let introduced = order.introduction?.key else { continue }
      let before = said[order.id]
      if !order.isEnded, before?.introduced == nil {
        statements[order.id] = KeyStatement(introduced: introduced, isEnded: false, until: introduced.until)
      } else if order.isEnded, before?.introduced != nil, before?.isEnded != true {
        statements[order.id] = KeyStatement(introduced: nil, isEnded: true, until: introduced.until)
      }
    }
    return statements
  }
}

extension KeyOrder {
  /// Returns whether a key introduced this one, which is trusted after a time, in Unix seconds.
  fileprivate func isIntroduced(by introducer: KeyID, after time: UInt64) -> Bool {
    introduction.map { $0.introducer == introducer && $0.key.until > time } ?? false
  }
}

extension FleetSession {
  /// Returns the orders about keys for an audience, and for the groups of a device.
  func keyOrders(for audience: AudienceID) throws(FleetFault) -> KeyOrders {
    var orders: [KeyOrder] = []
    for row in try rows(
      """
      SELECT audience, kid, introducer, point, begins, until, ended FROM key_orders
      WHERE audience = $1 OR audience IN (SELECT audience FROM group_devices WHERE device = $1) ORDER BY audience, kid
      """, .copying(audience.bytes))
    {
      orders.append(try keyOrder(row))
    }
    return KeyOrders(orders, for: audience)
  }

  /// Reads the columns audience, kid, introducer, point, begins, until and ended.
  private func keyOrder(_ row: SQLRow) throws(FleetFault) -> KeyOrder {
    let (id, introducer, ended) = try decoding { () throws(SQLFault) in
      (try row.bytes(1), try row.optionalBytes(2), try row.optionalUnsigned(6))
    }
    guard let keyID = KeyID(id.span) else { throw .corrupt }
    var introduction: KeyOrder.Introduction?
    if let introducer {
      guard let introducerID = KeyID(introducer.span), let key = try introducedKey(row, 3) else { throw .corrupt }
      introduction = KeyOrder.Introduction(introducer: introducerID, key: key)
    }
    return KeyOrder(audience: try audienceID(row, 0), id: keyID, introduction: introduction, isEnded: ended != nil)
  }

  /// Returns what the bulletins of a chain say about keys, altogether.
  ///
  /// - Parameter key: The values of the columns `audience` and `issuer`.
  func saidKeys(_ key: [Value]) throws(FleetFault) -> [KeyID: KeyStatement] {
    var said: [KeyID: KeyStatement] = [:]
    for row in try rows(
      "SELECT kid, point, begins, until, ends FROM bulletin_keys WHERE audience = $1 AND issuer = $2 ORDER BY number",
      values: key)
    {
      let (id, statement) = try keyStatement(row)
      said[id] = said[id]?.merged(with: statement) ?? statement
    }
    return said
  }

  /// Reads the columns kid, point, begins, until and ends.
  func keyStatement(_ row: SQLRow) throws(FleetFault) -> (KeyID, KeyStatement) {
    let (id, until, ends) = try decoding { () throws(SQLFault) in
      (try row.bytes(0), try row.unsigned(3), try row.unsigned(4))
    }
    guard let keyID = KeyID(id.span) else { throw .corrupt }
    return (keyID, KeyStatement(introduced: try introducedKey(row, 1), isEnded: ends == 1, until: until))
  }

  /// Reads the columns point, begins and until; nil if there is no point.
  private func introducedKey(_ row: SQLRow, _ column: Int) throws(FleetFault) -> IntroducedKey? {
    let (bytes, begins, until) = try decoding { () throws(SQLFault) in
      (try row.optionalBytes(column), try row.optionalUnsigned(column + 1), try row.optionalUnsigned(column + 2))
    }
    guard let bytes else { return nil }
    guard let point = P256Point(bytes.span), let begins, let until else { throw .corrupt }
    return IntroducedKey(point: point, from: begins, until: until)
  }
}
