import HoldfastCore
import HoldfastDatabase
import HoldfastIssuer
import HoldfastStorage

/// The contents of one bulletin, or of several of one key for one audience.
struct ChainContents {
  /// The revoked tokens, in any order.
  var revoked: [ListedToken] = []
  /// The generation of the device; nil to leave it as it is.
  var generation: UInt64?
  /// The least versions of apps.
  var versions: [BoundedText<64>: AppVersion] = [:]
  /// The users to lock or remove. Their bulletin is sealed.
  var users: [BoundedText<32>: UserOrder] = [:]

  /// Whether there is nothing to say.
  var isEmpty: Bool { revoked.isEmpty && generation == nil && versions.isEmpty && users.isEmpty }

  /// Returns contents that say what both say; nil if it is too much for one bulletin.
  ///
  /// - Parameters:
  ///   - next: The contents of a later bulletin.
  ///   - time: The time of the later one, in Unix seconds, which excludes what is over by then.
  func merged(with next: ChainContents, at time: UInt64) -> ChainContents? {
    var merged = next
    merged.revoked += revoked.filter { $0.until > time }
    merged.generation = [generation, next.generation].compactMap(\.self).max()
    merged.versions.merge(versions) { max($0, $1) }
    merged.users.merge(users.filter { !$0.value.isOver(at: time) }) { newer, _ in newer }
    return merged.fitsOneBulletin ? merged : nil
  }

  /// Whether one bulletin can say all this.
  private var fitsOneBulletin: Bool {
    // Most bulletins have tokens only, whose number does.
    guard !versions.isEmpty || !users.isEmpty else { return revoked.count <= BulletinClaims.revokedLimit }
    return bulletin.fitsOneBulletin
  }

  /// Returns the contents in parts for one bulletin each, at least one. Those that name users are the last ones, so that as few as possible
  /// have to be sealed.
  func parts() -> [ChainContents] {
    let tokens = revoked.sorted { $0.id.bytes.precedes($1.id.bytes) }
    var parts = tokens.parts(of: BulletinClaims.revokedLimit).map { ChainContents(revoked: $0) }
    let others = ChainContents(generation: generation, versions: versions)
    if let both = parts.last?.merged(with: others, at: 0) {
      parts[parts.count - 1] = both
    } else if !others.isEmpty || users.isEmpty {
      parts.append(others)
    }
    let named = users.sorted { $0.key.bytes.precedes($1.key.bytes) }
    return parts
      + named.parts(of: BulletinContents.userLimit).map { part in
        ChainContents(users: Dictionary(uniqueKeysWithValues: part.map { ($0.key, $0.value) }))
      }
  }

  /// The contents as a writer of bulletins takes them.
  var bulletin: BulletinContents {
    var contents = BulletinContents()
    contents.generation = generation
    for token in revoked { contents.revoked[token.id] = token.until }
    contents.minimumVersions = versions
    contents.users = users.mapValues(\.until)
    return contents
  }
}

/// A revoked token as a bulletin names it.
struct ListedToken {
  let id: TokenID
  /// The time at which the token expires, in Unix seconds.
  let until: UInt64

  /// Reads the columns id and expiry.
  init(_ row: SQLRow, in session: FleetSession) throws(FleetFault) {
    let (bytes, until) = try session.decoding { () throws(SQLFault) in (try row.bytes(0), try row.unsigned(1)) }
    guard let id = TokenID(bytes.span) else { throw .corrupt }
    (self.id, self.until) = (id, until)
  }
}

extension Array {
  /// Returns the elements in parts of at most `count`, in order; none if there are none.
  fileprivate func parts(of count: Int) -> [[Element]] {
    stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
  }
}
