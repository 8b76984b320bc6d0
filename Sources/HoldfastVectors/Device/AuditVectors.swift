import HoldfastCore
import HoldfastDevice
import HoldfastFormats

/// The vectors `AuditEntry`: entries of an audit log that a strict reader accepts or refuses. Source: docs/audit-log.md.
struct AuditEntryVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bytes = try test.bytes("entry")
    var written: [UInt8] = []
    do throws(EncodingFault) { try AuditEntry(bytes.span).encode(into: &written) } catch { return .refused("\(error)") }
    return written == bytes ? .accepted : .differs("entry, written again,")
  }
}

/// The vectors `AuditFile`: files of entries, whose chain must lead from the first head to the last.
///
/// Source: docs/audit-log.md, Cutting the log.
struct AuditFileVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bytes = try test.bytes("file")
    let archive: AuditArchive
    do throws(AuditArchiveFault) { archive = try AuditArchive(bytes) } catch { return .refused("\(error)") }
    do throws(LedgerFault) {
      guard let number = try archive.verifyAudit().firstBroken else { return .accepted }
      return .refused("the chain is broken at entry \(number)")
    } catch { return .refused("\(error)") }
  }
}
