import HoldfastCore

/// What is wrong with a process; nothing, when it is clean.
///
/// Its bytes are the deterministic CBOR array of `[name (text), details (bytes), count]`, sorted by their bytes, none
/// twice; no bytes at all when there is nothing.
struct Findings {
  /// What was found, without its details.
  private(set) var kinds: Set<Finding> = []
  private var entries: [[UInt8]] = []

  var isEmpty: Bool { entries.isEmpty }

  mutating func note(_ finding: Finding, details: [UInt8] = [], count: Int = 1) {
    var entry: [UInt8] = []
    entry.appendCBOR(array: 3)
    entry.appendCBOR(text: finding.name)
    entry.appendCBOR(bytes: details.span)
    entry.appendCBOR(unsigned: UInt64(count))
    kinds.insert(finding)
    if !entries.contains(entry) { entries.append(entry) }
  }

  var encoded: [UInt8] {
    guard !isEmpty else { return [] }
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: entries.count)
    for entry in entries.sorted(by: { $0.lexicographicallyPrecedes($1) }) { bytes += entry }
    return bytes
  }
}
