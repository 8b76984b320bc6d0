import HoldfastCore

/// The tokens that a client has for API domains, until shortly before they expire.
///
/// A token counts by two clocks: the date, and the time that has really passed since it was asked for. A clock that is put back
/// therefore makes no token last longer.
struct TokenCache: Sendable {
  private struct Entry: Sendable {
    let result: FetchResult
    /// The date after which the token is not used any more.
    let lastUnixSeconds: UInt64
    /// The moment after which the token is not used any more, in seconds since the start of the machine.
    let lastMoment: Int64
  }

  /// An answer that an API domain has no token, which counts for a short time.
  private struct Absence: Sendable {
    let status: FetchStatus
    let lastMoment: Int64
  }

  private var entries: [String: Entry] = [:]
  private var absences: [String: Absence] = [:]
  /// The integrity checks of the attestation.
  private var checks: Digest?

  /// The time before its expiry from which on a token is not used any more, in seconds; for tokens that live less than five times
  /// as long, a fifth of their life.
  static let marginSeconds: UInt64 = 30
  /// The time for which an unknown or unprotected domain stays one, in seconds.
  static let absenceSeconds: Int64 = 60
  /// The largest number of domains.
  private static let limit = 1024

  /// Returns the token for a domain, if it still counts and the checks have the same result as at the attestation.
  func result(for domain: String, checks: Digest, now: Moment) -> FetchResult? {
    if let absence = absences[domain], now.bootSeconds < absence.lastMoment { return FetchResult(absence.status) }
    guard self.checks == checks, let entry = entries[domain], now.bootSeconds < entry.lastMoment,
      now.unixSeconds ?? 0 < entry.lastUnixSeconds
    else { return nil }
    return entry.result
  }

  /// Keeps a token.
  ///
  /// - Parameters:
  ///   - asked: the moment before the token was asked for.
  ///   - checks: the integrity checks of its attestation. Tokens of an attestation with other checks are dropped.
  mutating func keep(
    _ result: FetchResult, _ token: (jwt: CompactJWT, expires: UInt64), for domain: String, asked: Moment,
    checks: Digest
  ) {
    if self.checks != checks || entries.count >= Self.limit { removeAll() }
    self.checks = checks
    absences[domain] = nil
    let life = token.expires - min(token.jwt.claims["iat"]?.number ?? token.expires, token.expires)
    let margin = min(Self.marginSeconds, life / 5)
    // JSON's integers are at most 2^53 - 1, so that nothing overflows.
    entries[domain] = Entry(
      result: result, lastUnixSeconds: token.expires - margin, lastMoment: asked.bootSeconds + Int64(life - margin))
  }

  /// Keeps the answer that a domain has no token.
  mutating func keep(absence status: FetchStatus, for domain: String, asked: Moment) {
    if absences.count >= Self.limit { absences = [:] }
    entries[domain] = nil
    absences[domain] = Absence(status: status, lastMoment: asked.bootSeconds + Self.absenceSeconds)
  }

  /// Drops everything, so that the next fetch attests the app anew.
  mutating func removeAll() { self = TokenCache() }
}

/// A moment by both clocks.
package struct Moment: Sendable {
  /// The date in Unix seconds; nil if there is none.
  package let unixSeconds: UInt64?
  /// The seconds since the start of the machine, which nobody can set.
  package let bootSeconds: Int64

  /// Creates a moment.
  package init(unixSeconds: UInt64?, bootSeconds: Int64) {
    (self.unixSeconds, self.bootSeconds) = (unixSeconds, bootSeconds)
  }
}
