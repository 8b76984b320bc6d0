import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// A device's log, and pages of it.
struct DeviceLog {
  /// The entries in their encoding, from number 1 on.
  var entries: [[UInt8]] = []
  /// The chain before the first entry, and after each.
  var chains = [AuditChain()]

  /// Creates a log of `count` entries, which differs from others behind entry `fork`.
  init(_ count: Int, forkedFrom fork: Int = .max) throws {
    var cryptography = OpenSSLCryptography()
    for number in 1...count {
      let event = AuditEvent.started(bootCount: UInt64(number > fork ? 1000 + number : number))
      var bytes: [UInt8] = []
      AuditEntry(sequence: UInt64(number), time: testTime, event: event).encode(into: &bytes)
      entries.append(bytes)
      var chain = chains[number - 1]
      try chain.advance(over: bytes.span, using: &cryptography)
      chains.append(chain)
    }
  }

  /// A page with the entries from one number to another, made when the log had `count` entries.
  func page(_ range: ClosedRange<Int>, of count: Int? = nil, cut: UInt64 = 0) -> AuditPage {
    var page = AuditPage(after: chains[range.lowerBound - 1], of: chains[count ?? entries.count], cut: cut)
    for number in range { page.take(entries[number - 1]) }
    return page
  }
}

extension AuditPage {
  /// Adds an entry, for which there is room.
  mutating func take(_ entry: [UInt8]) {
    let isTaken = append(entry)
    #expect(isTaken)
  }

  /// The same entries, with another hash at the end.
  func changed(end other: AuditChain) -> AuditPage {
    var page = AuditPage(after: base, of: AuditChain(count: end.count, head: other.head), cut: cut)
    for entry in entries { page.take(entry) }
    return page
  }
}
