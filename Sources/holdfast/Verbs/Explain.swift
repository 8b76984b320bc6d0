import ArgumentParser
import HoldfastCore
import HoldfastJSON
import HoldfastMeasurement

struct Explain: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Say which components changed since the baseline, and what to do.",
    discussion: "Exit status 0 when nothing changed, 1 when something did.")

  @Option(help: "The folder that enroll filled.")
  var state: String

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let folder = ProverFolder(path: state)
    let enrolment = try folder.load()
    guard enrolment.hasOwnConfiguration else { throw folder.damaged(ProverFolder.configurationName) }
    let changed: [ComponentID]
    do throws(MeasurementError) {
      let configuration = try enrolment.decodedConfiguration()
      var measurer = Measurer()
      let now = try measurer.measure(for: configuration)
      changed = try measurer.fingerprints(of: now, for: configuration).changedComponents(since: enrolment.fingerprints)
    } catch { throw Failure(error) }
    if output.json {
      Console.result(.object([("changed", .array(changed.map { .string($0.description) }))]))
    } else if changed.isEmpty {
      Console.result("nothing changed since the baseline")
    }
    guard changed.isEmpty else {
      if !output.json {
        for id in changed { Console.result("\(id): \(Self.cause(of: id.description))") }
      }
      throw Failure(
        .denied, "\(changed.count) of the components changed since the baseline",
        hint: "if you know why, enrol again; if you do not, stop using this host until you do"
      ).afterResult()
    }
  }

  /// What usually changes a component.
  private static func cause(of id: String) -> String {
    switch id {
    case "app.image": "the executable file is another: an update, or somebody changed it"
    case "app.text": "the code in memory is another: an update of the app or of a library, or a patch in memory"
    case "app.injected": "something is injected: LD_PRELOAD, LD_AUDIT, ld.so.preload, or code that no file holds"
    case "app.debug": "a debugger or an instrumentation agent is attached"
    case "os.release": "the operating system was updated"
    case "device.machine": "the machine id or the serial number is another: a copied disk, or a new installation"
    case "device.cpu": "the processor is another: other hardware, or a virtual machine that moved"
    case "device.secret": "the device secret is another: the app's own storage was replaced"
    default: "this build cannot say more"
    }
  }
}
