import HoldfastCore
import HoldfastOpenSSL

/// The whole state of an authenticator as the bytes in an app's store.
///
/// They are `hfauth`, the version as two digits, the deterministic CBOR array `[id, change count, [record, …], [replacement, …]]` with
/// records as in a state string, and the first 8 bytes of the SHA-256 of all that. The hash reveals damage. It authenticates nothing,
/// because an authenticator has no key that whoever writes to the store lacks.
package struct StoreState {
  static let idByteCount = 16
  private static let name = Array("hfauth".utf8)
  private static let version = Array("01".utf8)
  private static let checkByteCount = 8
  private static let maximumByteCount = 1 << 22
  /// The largest number of records. It bounds what a foreign state can make the authenticator allocate.
  private static let maximumRecordCount = 8192

  let stamp: AuthenticatorStamp
  /// The records, in order.
  let records: [StoredRecord]
  /// The records that replace others once a device has confirmed them, in order.
  let replacements: [StoredRecord]

  init(stamp: AuthenticatorStamp, records: [StoredRecord], replacements: [StoredRecord]) {
    (self.stamp, self.records, self.replacements) = (stamp, records, replacements)
  }

  /// Parses the bytes of a store.
  ///
  /// - Throws: `foreign` for bytes of something else, `newerVersion`, `corrupt`.
  package init(_ bytes: [UInt8]) throws(AuthenticatorFault) {
    guard bytes.starts(with: Self.name) else { throw bytes.isEmpty ? .corrupt : .foreign }
    let headCount = Self.name.count + Self.version.count
    guard (headCount + Self.checkByteCount...Self.maximumByteCount).contains(bytes.count) else { throw .corrupt }
    let version = bytes[Self.name.count..<headCount]
    guard version.elementsEqual(Self.version) else {
      throw version.allSatisfy { (0x30...0x39).contains($0) } ? .newerVersion : .corrupt
    }
    let bodyCount = bytes.count - Self.checkByteCount
    let check = try Self.check(bytes.span.extracting(first: bodyCount))
    guard bytes[bodyCount...].elementsEqual(check) else { throw .corrupt }
    do throws(EncodingFault) {
      var reader = CBORReader(bytes.span.extracting(headCount..<bodyCount))
      try reader.array(of: 4)
      let id: FixedBytes<16> = try reader.fixedBytes()
      let changeCount = try reader.unsigned()
      guard changeCount > 0, let stamp = AuthenticatorStamp(id: [UInt8](id.bytes), changeCount: changeCount) else {
        throw .unexpected
      }
      let records = try Self.records(&reader)
      let replacements = try Self.records(&reader)
      try reader.finish()
      (self.stamp, self.records, self.replacements) = (stamp, records, replacements)
    } catch { throw .corrupt }
  }

  private static func records(_ reader: inout CBORReader) throws(EncodingFault) -> [StoredRecord] {
    let count = try reader.arrayHead()
    guard count <= maximumRecordCount else { throw .unexpected }
    var records: [StoredRecord] = []
    for _ in 0..<count {
      let stored = try StoredRecord(&reader)
      guard records.last?.record.precedes(stored.record) != false else { throw .unexpected }
      records.append(stored)
    }
    return records
  }

  /// Returns the bytes for a store.
  ///
  /// - Throws: `diskFull` if there are more records than a state may have, `failed`.
  package func encoded() throws(AuthenticatorFault) -> [UInt8] {
    guard max(records.count, replacements.count) <= Self.maximumRecordCount else { throw .diskFull }
    var bytes = Self.name + Self.version
    bytes.appendCBOR(array: 4)
    bytes.appendCBOR(bytes: stamp.id.span)
    bytes.appendCBOR(unsigned: stamp.changeCount)
    for list in [records, replacements] {
      bytes.appendCBOR(array: list.count)
      for stored in list { stored.encode(into: &bytes) }
    }
    bytes += try Self.check(bytes.span)
    guard bytes.count <= Self.maximumByteCount else { throw .diskFull }
    return bytes
  }

  /// Returns the check bytes of a whole state.
  static func check(of bytes: [UInt8]) -> [UInt8] { Array(bytes.suffix(checkByteCount)) }

  private static func check(_ body: Span<UInt8>) throws(AuthenticatorFault) -> [UInt8] {
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 authenticator state")
    hash.append(body)
    do throws(CryptographyFailure) {
      let digest: Digest = try hash.finish()
      return [UInt8](digest.bytes.extracting(first: checkByteCount))
    } catch { throw .failed }
  }
}
