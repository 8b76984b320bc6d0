#if Service
import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastService

struct Export: ServiceVerb {
  static let configuration = CommandConfiguration(
    abstract: "Write everything that the service remembers into one file, while it serves.",
    discussion: """
      The file is encrypted with service.key, without which it is worthless, and can be restored into SQLite and PostgreSQL.
      """)

  @Option(help: "The file, which must not exist.", completion: .file()) var out: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  mutating func perform() async throws(ServiceFailure) {
    let fleet = try instance.fleet(instance.configuration())
    let count: UInt64
    do throws(BackupFileFault) { count = try fleet.export(to: out) } catch { throw ServiceFailure(error, backup: out) }
    json
      ? Output.result(.object([("file", .string(out)), ("records", .integer(count))]))
      : Output.result("\(count) records in \(out)")
  }
}

struct Restore: ServiceVerb {
  static let configuration = CommandConfiguration(
    abstract: "Restore an exported file into an empty database.",
    discussion: """
      The folder must have the service.key of the service that wrote the file. What happened after the export is lost, so the \
      restored service accepts no invitation, request, operator's token or baseline of before, and raises the generation of \
      each device. Repeat revocations, blocks, withdrawals and changes of the policy that are newer than the file before you \
      serve.
      """)

  @Argument(help: "The file.", completion: .file()) var file: String
  @Flag(
    help: """
      Keep everything valid. Only if the service was stopped before the export and has not run since, as for a move to \
      another database.
      """) var nothingLost = false
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  mutating func perform() async throws(ServiceFailure) {
    let key = try instance.serviceKey()
    let location = instance.location(try instance.configuration())
    let restoration: Restoration
    do throws(BackupFileFault) {
      restoration = try Fleet.restore(
        fromFile: file, into: location, serviceKey: key, isComplete: nothingLost,
        by: instance.caller.actor)
    } catch { throw ServiceFailure(error, backup: file) }
    let moment = Timestamp(unixSeconds: restoration.moment)
    if json {
      Output.result(
        .object([("moment", .integer(restoration.moment)), ("records", .integer(restoration.recordCount))]))
    } else {
      Output.result("restored \(restoration.recordCount) records, the state of \(moment)")
      if !nothingLost {
        Output.note(
          "repeat what was revoked, blocked, withdrawn or changed after \(moment); make operators and invitations anew")
      }
    }
  }
}

extension ServiceFailure {
  fileprivate init(_ fault: BackupFileFault, backup path: String) {
    switch fault {
    case .file(let error): self.init(error, hint: nil)
    case .backup(let fault):
      switch fault.kind {
      case .notABackup: self.init(.malformed, "\(path) is no file that holdfast-service export wrote")
      case .wrongKey:
        self.init(
          .malformed, "\(path) was written with another service.key",
          hint: "put that service.key into the folder of --dir")
      case .damaged:
        self.init(.malformed, "\(path) was cut or changed; nothing was restored", hint: "use another copy")
      case .newerVersion:
        self.init(.malformed, "a newer version of holdfast-service wrote \(path)", hint: "install that version")
      case .notEmpty: self.init(.malformed, "there is a service in this database already; nothing was changed")
      case .file: self.init(.fault, "\(path) could not be read or written")
      case .fleet: self.init(fault.cause)
      }
    }
  }
}
#endif
