// A microcontroller writes a page in place: see DeviceSession.
#if !hasFeature(Embedded)
/// A page of a device's audit log, for the service that its policy names as the home of the log.
///
/// Its text is the deterministic CBOR array `[cut, after, head, [* entry], count, last]`, followed by zero bytes up to the next multiple of
/// 256. Source: docs/couriers.md, The audit log goes home.
package struct AuditPage: Sendable, Equatable {
  /// The number of entries that the device no longer keeps.
  package let cut: UInt64
  /// The chain before the first entry.
  package let base: AuditChain
  /// The entries, in their encoding.
  package private(set) var entries: [[UInt8]] = []
  /// The chain after the last entry of the whole log, when the page was made.
  package let end: AuditChain

  /// The length of the longest text, a multiple of 256 bytes: sealed and in its message, it has at most 4096 bytes.
  private static let maximumByteCount = 15 * paddingByteCount
  private static let paddingByteCount = 256
  /// The salt before the ciphertext, and the tag after it, in bytes.
  static let overhead = (salt: 16, tag: 16)
  /// The length of the longest sealed page, in bytes.
  package static let maximumSealedByteCount = maximumByteCount + overhead.salt + overhead.tag

  /// Creates a page without entries.
  package init(after base: AuditChain, of end: AuditChain, cut: UInt64) {
    (self.cut, self.base, self.end) = (cut, base, end)
  }

  /// Adds an entry, unless it does not fit any more. Returns whether it did.
  package mutating func append(_ entry: [UInt8]) -> Bool {
    entries.append(entry)
    guard encodedWithoutPadding().count <= Self.maximumByteCount else {
      entries.removeLast()
      return false
    }
    return true
  }

  /// Returns whether a sealed page can have this length.
  package static func isSealedByteCount(_ count: Int) -> Bool {
    let text = count - overhead.salt - overhead.tag
    return text > 0 && text <= maximumByteCount && text % paddingByteCount == 0
  }

  /// Decodes the text of a page.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure, for padding other than zeros, and for
  ///   more entries than the log has.
  package init(_ text: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(text)
    try reader.array(of: 6)
    cut = try reader.unsigned()
    base = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
    for _ in 0..<(try reader.arrayHead()) {
      let entry = try reader.byteString()
      entries.append(entry.indices.map { entry[$0] })
    }
    end = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
    guard end.count <= maximumInteger, cut <= base.count, base.count <= end.count,
      UInt64(entries.count) <= end.count - base.count
    else {
      throw .unexpected
    }
    guard text.count == encoded().count else { throw .unexpected }
    for index in reader.position..<text.count where text[index] != 0 { throw .unexpected }
  }

  /// Returns the text.
  func encoded() -> [UInt8] {
    var text = encodedWithoutPadding()
    let rest = text.count % Self.paddingByteCount
    if rest > 0 { text += [UInt8](repeating: 0, count: Self.paddingByteCount - rest) }
    return text
  }

  private func encodedWithoutPadding() -> [UInt8] {
    var text: [UInt8] = []
    text.appendAuditPage(cut: cut, after: base)
    text.appendCBOR(array: entries.count)
    for entry in entries { text.appendCBOR(bytes: entry.span) }
    end.encode(into: &text)
    return text
  }
}
#endif
