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
  /// The keys that are introduced, that end, or both.
  var keys: [KeyID: KeyStatement] = [:]
  /// The users to lock or remove. Their bulletin is sealed.
  var users: [BoundedText<32>: UserOrder] = [:]

  /// Whether there is nothing to say.
  var isEmpty: Bool { revoked.isEmpty && generation == nil && versions.isEmpty && keys.isEmpty && users.isEmpty }

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
    merged.keys.merge(keys.filter { $0.value.until > time }) { newer, older in older.merged(with: newer) }
    merged.users.merge(users.filter { !$0.value.isOver(at: time) }) { newer, _ in newer }
    return merged.fitsOneBulletin ? merged : nil
  }

  /// The most keys that one bulletin introduces, and the most that it ends.
  static let introducedLimit = 4
  private static let endedLimit = 16

  /// Whether one bulletin can say all this.
  private var fitsOneBulletin: Bool {
    // Most bulletins have tokens only, whose number does.
    guard !versions.isEmpty || !keys.isEmpty || !users.isEmpty else {
      return revoked.count <= BulletinClaims.revokedLimit
    }
    guard keys.values.count(where: { $0.introduced != nil }) <= Self.introducedLimit,
      keys.values.count(where: \.isEnded) <= Self.endedLimit
    else { return false }
    return bulletin.fitsOneBulletin
  }

  /// Returns the contents in parts for one bulletin each, at least one. Those that name keys come after the others, because a device may
  /// refuse them, and end keys last. Those that name users are behind them, so that as few as possible have to be sealed.
  func parts() -> [ChainContents] {
    let tokens = revoked.sorted { $0.id.bytes.precedes($1.id.bytes) }
    var parts = tokens.parts(of: BulletinClaims.revokedLimit).map { ChainContents(revoked: $0) }
    let others = ChainContents(generation: generation, versions: versions)
    if let both = parts.last?.merged(with: others, at: 0) {
      parts[parts.count - 1] = both
    } else if !others.isEmpty || (keys.isEmpty && users.isEmpty) {
      parts.append(others)
    }
    parts += keyParts()
    let named = users.sorted { $0.key.bytes.precedes($1.key.bytes) }
    return parts
      + named.parts(of: BulletinContents.userLimit).map { part in
        ChainContents(users: Dictionary(uniqueKeysWithValues: part.map { ($0.key, $0.value) }))
      }
  }

  /// Returns parts of the keys: first those that are introduced, then those that end.
  private func keyParts() -> [ChainContents] {
    let named = keys.sorted { $0.key.bytes.precedes($1.key.bytes) }
    let introducing = named.filter { $0.value.introduced != nil }.parts(of: Self.introducedLimit)
    let ending = named.filter { $0.value.introduced == nil }.parts(of: Self.endedLimit)
    var parts: [ChainContents] = []
    for part in introducing + ending {
      let contents = ChainContents(keys: Dictionary(uniqueKeysWithValues: part.map { ($0.key, $0.value) }))
      if let both = parts.last?.merged(with: contents, at: 0) {
        parts[parts.count - 1] = both
      } else {
        parts.append(contents)
      }
    }
    return parts
  }

  /// The contents as a writer of bulletins takes them.
  var bulletin: BulletinContents {
    var contents = BulletinContents()
    contents.generation = generation
    for token in revoked { contents.revoked[token.id] = token.until }
    contents.minimumVersions = versions
    contents.introduced = keys.values.compactMap(\.introduced)
    contents.ended = Set(keys.filter(\.value.isEnded).keys)
    contents.users = users.mapValues(\.until)
    return contents
  }
}

/// A revoked token as a bulletin names it.
struct ListedToken {
  let id: TokenID
  /// A time at which the token has expired, in Unix seconds.
  let until: UInt64

  /// Reads the columns id and until of an entry of a bulletin.
  init(_ row: SQLRow, in session: FleetSession) throws(FleetFault) {
    let (bytes, until) = try session.decoding { () throws(SQLFault) in (try row.bytes(0), try row.unsigned(1)) }
    guard let id = TokenID(bytes.span) else { throw .corrupt }
    (self.id, self.until) = (id, until)
  }

  /// Reads the columns id, issued and expires of a token that no bulletin has named yet. Its expiry is rounded up to a multiple of a
  /// power of two, which is at most an eighth of its lifetime: a prover knows when its token expires, and would recognise it by that.
  init(new row: SQLRow, in session: FleetSession) throws(FleetFault) {
    let (bytes, issued, expires) = try session.decoding { () throws(SQLFault) in
      (try row.bytes(0), try row.unsigned(1), try row.unsigned(2))
    }
    guard let id = TokenID(bytes.span) else { throw .corrupt }
    let eighth = max((expires - min(issued, expires)) / 8, 1)
    let unit: UInt64 = 1 << (63 - UInt64(eighth.leadingZeroBitCount))
    self.id = id
    until = min((expires + unit - 1) / unit * unit, maximumInteger)
  }
}

extension Array {
  /// Returns the elements in parts of at most `count`, in order; none if there are none.
  fileprivate func parts(of count: Int) -> [[Element]] {
    stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
  }
}
