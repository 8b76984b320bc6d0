import HoldfastCore
import HoldfastOpenSSL

/// The claims of a bulletin under test, byte by byte as docs/couriers.md specifies them. Entries stay in the order in which they are
/// given.
package struct TestBulletin {
  package var number: UInt64 = 1000 * testTime
  package var predecessor: UInt64 = 0
  package var issuedAt: UInt64 = testTime
  package var audience: AudienceID
  package var revoked: [(TokenID, until: UInt64)] = []
  package var generation: UInt64?
  package var versions: [(String, UInt64, UInt64, UInt64)] = []
  package var introduced: [IntroducedKey] = []
  package var ended: [KeyID] = []
  package var users: [(String, until: UInt64?)] = []

  package init(for device: DeviceID) { audience = AudienceID(device.bytes)! }

  package init(for audience: AudienceID) { self.audience = audience }

  package func encoded() -> [UInt8] {
    let lists = [revoked.isEmpty, versions.isEmpty, introduced.isEmpty, ended.isEmpty, users.isEmpty]
    var map: [UInt8] = []
    map.appendCBOR(map: 4 + lists.count { !$0 } + (generation == nil ? 0 : 1))
    for (label, value) in [(1, number), (2, predecessor), (3, issuedAt)] as [(UInt64, UInt64)] {
      map.appendNumbers(label, value)
    }
    map.appendCBOR(unsigned: 4)
    map.appendCBOR(bytes: audience.bytes)
    map.appendEntries(5, revoked) {
      $0.appendCBOR(array: 2)
      $0.appendCBOR(bytes: $1.0.bytes)
      $0.appendNumbers($1.until)
    }
    if let generation { map.appendNumbers(6, generation) }
    map.appendEntries(7, versions) {
      $0.appendCBOR(array: 4)
      $0.appendCBOR(text: Array($1.0.utf8).span)
      $0.appendNumbers($1.1, $1.2, $1.3)
    }
    map.appendEntries(8, introduced) {
      $0.appendCBOR(array: 4)
      $0.appendCBOR(bytes: $1.point.x.bytes)
      $0.appendCBOR(bytes: $1.point.y.bytes)
      $0.appendNumbers($1.from, $1.until)
    }
    map.appendEntries(9, ended) { $0.appendCBOR(bytes: $1.bytes) }
    map.appendEntries(10, users) {
      $0.appendCBOR(array: 2)
      $0.appendCBOR(text: Array($1.0.utf8).span)
      if let until = $1.until { $0.appendNumbers(until) } else { $0.appendCBORNull() }
    }
    return map
  }
}

extension [UInt8] {
  fileprivate mutating func appendNumbers(_ numbers: UInt64...) {
    for number in numbers { appendCBOR(unsigned: number) }
  }

  fileprivate mutating func appendEntries<Entry>(
    _ label: UInt64, _ entries: [Entry], _ write: (inout [UInt8], Entry) -> Void
  ) {
    guard !entries.isEmpty else { return }
    appendCBOR(unsigned: label)
    appendCBOR(array: entries.count)
    for entry in entries { write(&self, entry) }
  }
}
