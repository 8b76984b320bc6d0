#if Service
import ArgumentParser
import HoldfastFormats
import HoldfastLinux
import HoldfastService

struct ReceiveAudit: ServiceVerb {
  static let configuration = CommandConfiguration(
    commandName: "receive", abstract: "Store a device's audit log.",
    discussion: """
      holdfast device audit --to writes the file. Entries that are known already are compared, so a log that grows can be \
      received again and again.
      """)

  @Argument(help: "The file.", completion: .file()) var file: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  /// The entries that one request takes.
  private static let partCount = 1000

  mutating func perform() async throws(ServiceFailure) {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: file, limit: 1 << 30) } catch { throw ServiceFailure(error) }
    let archive: AuditArchive
    do throws(AuditArchiveFault) { archive = try AuditArchive(bytes) } catch {
      throw ServiceFailure(
        .malformed,
        error == .newerVersion
          ? "\(file) was written by a later version"
          : "\(file) is not a file of audit entries, or only the beginning of one",
        hint: "holdfast device audit --to writes one")
    }
    let fleet = try instance.fleet(instance.configuration())
    var stored: UInt64 = 0
    do throws(AdministrationFault) {
      stored = try fleet.receive(archive, inPartsOf: Self.partCount, by: instance.caller.actor)
    } catch { throw ServiceFailure(error) }
    json
      ? Output.result(.object([("stored", .integer(stored))]))
      : Output.result("\(stored) new entries of \(archive.entries.count)")
  }
}
#endif
