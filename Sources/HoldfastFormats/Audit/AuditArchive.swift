import HoldfastCore

/// Entries of an audit log in a file: those that were cut off, or a copy. They are not secret, but name users and tokens.
///
/// The file has a JSON object on each line. The first is `{"holdfast_audit":1,"device_id":…,"after":…,"head":…}`: the device
/// whose log it is, the number of the entry before the first one here, and that entry's hash, 64 hexadecimal digits. Then
/// comes one `{"entry":…}` for each entry, its bytes in hexadecimal digits (see ``AuditEntry/encode(into:)``). The last is
/// `{"through":…,"head":…}`: the number of the last entry, and its hash. Each hash follows from the one before it and the
/// entry (see ``AuditChain``). So the whole file can be checked against the two heads, and both heads against the rest of the
/// log.
package struct AuditArchive: Sendable {
  private static let version: UInt64 = 1

  /// The id of the device whose log the entries are from.
  package let deviceID: DeviceID
  /// The chain before the first entry.
  package let base: AuditChain
  /// The chain after the last entry, as the last line records it.
  package let end: AuditChain
  /// The entries, in their encoding.
  package let entries: [[UInt8]]

  package init(deviceID: DeviceID, base: AuditChain, end: AuditChain, entries: [[UInt8]]) {
    (self.deviceID, self.base, self.end, self.entries) = (deviceID, base, end, entries)
  }

  /// Reads the contents of a file. It does not check that the entries lead from one head to the other.
  ///
  /// - Throws: `malformed` for anything that ``encoded()`` does not write, `newerVersion`.
  package init(_ bytes: [UInt8]) throws(AuditArchiveFault) {
    // Each line ends with a line feed, including the last one. So a file that was cut off within a line is refused.
    guard bytes.last == 0x0a else { throw .malformed }
    let lines = bytes.dropLast().split(separator: 0x0a, omittingEmptySubsequences: false)
    guard lines.count >= 2, let first = lines.first, let last = lines.last else { throw .malformed }
    let head = try Self.object(first)
    guard let version = head["holdfast_audit"]?.number else { throw .malformed }
    guard version <= Self.version else { throw .newerVersion }
    guard version == Self.version, head.hasOnly(["holdfast_audit", "device_id", "after", "head"]),
      let id = head["device_id"]?.text, let deviceID: DeviceID = fixedBytes(hexadecimal: id)
    else { throw .malformed }
    let tail = try Self.object(last)
    guard tail.hasOnly(["through", "head"]) else { throw .malformed }
    var entries: [[UInt8]] = []
    for line in lines.dropFirst().dropLast() {
      let object = try Self.object(line)
      guard object.hasOnly(["entry"]), let text = object["entry"]?.text,
        let entry = Self.bytes(hexadecimal: text)
      else { throw .malformed }
      entries.append(entry)
    }
    self.init(
      deviceID: deviceID, base: try Self.chain(head, "after"), end: try Self.chain(tail, "through"), entries: entries)
  }

  /// Returns the contents of the file.
  package func encoded() -> [UInt8] {
    var bytes = JSONValue.object([
      ("holdfast_audit", .integer(Self.version)), ("device_id", .string(hexadecimal(deviceID))),
      ("after", .integer(base.count)), ("head", .string(hexadecimal(base.head))),
    ]).compact()
    for entry in entries {
      bytes += [0x0a] + JSONValue.object([("entry", .string(hexadecimal(entry.span)))]).compact()
    }
    bytes += [0x0a]
    bytes += JSONValue.object([("through", .integer(end.count)), ("head", .string(hexadecimal(end.head)))]).compact()
    return bytes + [0x0a]
  }

  private static func object(_ line: ArraySlice<UInt8>) throws(AuditArchiveFault) -> JSONValue {
    do throws(JSONFault) { return try JSONValue(parsing: Array(line), byteLimit: 4096) } catch { throw .malformed }
  }

  private static func chain(_ object: JSONValue, _ count: String) throws(AuditArchiveFault) -> AuditChain {
    guard let count = object[count]?.number, let text = object["head"]?.text,
      let head: Digest = fixedBytes(hexadecimal: text)
    else { throw .malformed }
    return AuditChain(count: count, head: head)
  }

  private static func bytes(hexadecimal text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      let pair = String(decoding: digits[index..<index + 2], as: UTF8.self)
      guard let byte: FixedBytes<1> = fixedBytes(hexadecimal: pair) else { return nil }
      bytes.append(byte[0])
    }
    return bytes
  }
}

/// The reason that the contents of a file are no audit entries.
package enum AuditArchiveFault: Error, Equatable {
  /// The file is not an archive of audit entries, or only the beginning of one.
  case malformed
  /// The file has a version that this program does not know.
  case newerVersion
}
