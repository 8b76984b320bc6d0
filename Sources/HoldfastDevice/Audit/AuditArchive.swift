import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// Entries of an audit log that were cut off into a file. They are not secret, but name users and tokens.
///
/// The file has a JSON object on each line. The first is `{"holdfast_audit":1,"device_id":…,"after":…,"head":…}`: which device's
/// log it is, the number of the entry before the first one here, and its hash, 64 hexadecimal digits. Then comes one
/// `{"entry":…}` for each entry, its bytes in hexadecimal digits (see ``AuditEntry/encode(into:)``). The last is
/// `{"through":…,"head":…}`: the number of the last entry, and its hash. Each hash follows from the one before it and the entry
/// (see ``AuditChain``), so that the whole file can be checked against the two heads, and both against the log that goes on.
package struct AuditArchive: Sendable {
  /// The longest file that is read, in bytes.
  static let maximumByteCount = 1 << 30
  private static let version: UInt64 = 1

  package let deviceID: DeviceID
  /// The chain before the first entry.
  package let base: AuditChain
  /// What the last line says that the last entry leads to.
  package let end: AuditChain
  /// The bytes of the entries.
  let entries: [[UInt8]]

  init(deviceID: DeviceID, base: AuditChain, end: AuditChain, entries: [[UInt8]]) {
    (self.deviceID, self.base, self.end, self.entries) = (deviceID, base, end, entries)
  }

  /// Reads a file of at most 1 GiB.
  ///
  /// Throws `file` where it cannot be read, `malformed` for anything that ``encoded()`` does not write, and `newerVersion`. Whether
  /// the entries lead from one head to the other is for ``verifyAudit()`` to say.
  package init(path: String) throws(AuditArchiveFault) {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: path, limit: Self.maximumByteCount) } catch {
      throw .file(error)
    }
    try self.init(bytes)
  }

  init(_ bytes: [UInt8]) throws(AuditArchiveFault) {
    // Each line ends in a line feed, the last one too: a file that was cut off within a line is none.
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

  /// The bytes of the file.
  func encoded() -> [UInt8] {
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

extension AuditArchive: AuditLog {
  package func auditHead() -> AuditChain { end }

  package func auditEntries(after sequence: UInt64, limit: UInt64) -> [AuditEntry] {
    let skipped = sequence > base.count ? Int(clamping: sequence - base.count) : 0
    return entries.dropFirst(skipped).prefix(Int(clamping: limit)).compactMap { try? AuditEntry($0.span) }
  }

  /// Walks from the first head to the last. Throws `failed` where libcrypto does.
  package func verifyAudit() throws(LedgerFault) -> AuditReport {
    var report = AuditReport(recorded: end, firstKept: base.count + 1)
    var chain = base
    var cryptography = OpenSSLCryptography()
    for bytes in entries {
      do throws(CryptographyFailure) { try chain.advance(over: bytes.span, using: &cryptography) } catch {
        throw .failed
      }
      guard let entry = try? AuditEntry(bytes.span), entry.sequence == chain.count else {
        report.firstBroken = chain.count
        return report
      }
    }
    // A chain says that something in it was changed, and not what.
    if chain != end { report.firstBroken = base.count + 1 }
    return report
  }
}

/// Why a file of audit entries could not be read.
package enum AuditArchiveFault: Error, Equatable {
  case file(FileError)
  /// It is none, or only the beginning of one.
  case malformed
  /// Of a version that this program does not know.
  case newerVersion
}

/// What a walk along the audit log found.
package struct AuditReport: Sendable, Equatable {
  /// What the ledger says the last entry is.
  package var recorded: AuditChain
  /// The sequence number of the first entry that is kept.
  package var firstKept: UInt64 = 1
  /// The sequence number of the first entry that is missing, changed or out of place; nil when the whole chain holds.
  package var firstBroken: UInt64?
}
