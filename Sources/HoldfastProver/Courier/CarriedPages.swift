import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// The sealed pages of a device's audit log that a prover carries home.
///
/// They are in `pages.cbor` in the folder of the device's enrolment: a CBOR array of byte strings, the oldest first. The prover cannot
/// read them.
package struct CarriedPages: Sendable, Equatable {
  package static let fileName = "pages.cbor"
  /// The most pages. Beyond them, the oldest is dropped: the device gives it again, until its home has acknowledged it.
  package static let limit = 16
  fileprivate static let fileLimit = limit * (AuditPage.maximumSealedByteCount + 3) + 1

  /// The pages, the oldest first.
  package private(set) var pages: [[UInt8]] = []

  /// Creates pages of nothing.
  package init() {}

  /// Adds a page as the newest.
  package mutating func add(_ page: [UInt8]) {
    pages.append(page)
    if pages.count > Self.limit { pages.removeFirst() }
  }

  /// Removes pages that were handed in.
  package mutating func remove(_ handedIn: [[UInt8]]) { pages.removeAll { handedIn.contains($0) } }
}

/// The answer of the home to pages.
package struct CarriedReceipt: Sendable, Equatable {
  /// The receipt for the device, at most 256 bytes; nil if there is none.
  package let bytes: [UInt8]?
  /// The number of the first entry that the home misses; 0 if it misses none that it knows of.
  package let missing: UInt64

  package init(_ bytes: [UInt8]?, missing: UInt64) { (self.bytes, self.missing) = (bytes, missing) }

  /// Reads `{"receipt": base64 / null, "missing": number / null}`; nil if the value is no such answer.
  package init?(_ value: JSONValue) {
    guard let receipt = value["receipt"], let missing = value["missing"] else { return nil }
    guard missing == .null || missing.number != nil else { return nil }
    guard receipt != .null else {
      self.init(nil, missing: missing.number ?? 0)
      return
    }
    guard let text = receipt.text, let bytes = try? decodePublicPaddedBase64(text),
      bytes.count <= AuditReceipt.maximumByteCount
    else { return nil }
    self.init(bytes, missing: missing.number ?? 0)
  }
}

extension CarriedPages {
  fileprivate init?(_ bytes: [UInt8]) {
    do throws(EncodingFault) {
      var reader = CBORReader(bytes.span)
      let count = try reader.arrayHead()
      guard count <= Self.limit else { return nil }
      for _ in 0..<count {
        let page = try reader.byteString()
        guard AuditPage.isSealedByteCount(page.count) else { return nil }
        pages.append(page.indices.map { page[$0] })
      }
      try reader.finish()
    } catch { return nil }
  }

  fileprivate func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: pages.count)
    for page in pages { bytes.appendCBOR(bytes: page.span) }
    return bytes
  }
}

extension EnrolmentFolder {
  /// Reads the pages of the device. A file that is missing or damaged is no page: the device gives it again.
  package func pages() -> CarriedPages {
    guard let bytes = try? read(CarriedPages.fileName, limit: CarriedPages.fileLimit) else { return CarriedPages() }
    return CarriedPages(bytes) ?? CarriedPages()
  }

  /// Replaces the pages of the device.
  package func write(_ pages: CarriedPages) throws(StateFolderFault) {
    try write(pages.encoded(), as: CarriedPages.fileName)
  }
}
