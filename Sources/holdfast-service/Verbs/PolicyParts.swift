#if Service
import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastService

/// The tokens that settings are for.
struct ScopeOptions: ParsableArguments {
  @Option(help: "Only for tokens of this app, as its images were approved.") var app: String?
  @Option(help: "Only for this version of the app, three numbers.") var version: String?
  @Option(help: "Only for tokens for this device: its id.") var device: String?

  func members() throws(ServiceFailure) -> [(String, JSONValue)] {
    var members: [(String, JSONValue)] = []
    if let app { members.append(("app", .string(app))) }
    if let version { members.append(("version", try versionNumbers(version, of: "--version"))) }
    if let device { members.append(("device", .string(device))) }
    return members
  }
}

struct SetSettings: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set the settings that go with tokens.",
    discussion: """
      The most specific settings count: those for a device, else those of a version, else those of an app, else those of all. Provers \
      get them with their next enrolment, or with holdfast status --service.
      """)

  @Argument(help: "The file with the settings; - is standard input.", completion: .file()) var file: String
  @Option(help: "Their kind: json, text or bytes.") var kind = "json"
  @OptionGroup var scope: ScopeOptions
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(at: file == "-" ? "/dev/stdin" : file, limit: AppSettings.maximumByteCount)
    } catch { throw ServiceFailure(error, hint: nil) }
    let settings = JSONValue.object([("type", .string(kind)), ("value", .string(paddedBase64(bytes)))])
    return OperationCall(name: "setSettings", body: try scope.members() + [("settings", settings)])
  }
}

struct RemoveSettings: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove settings that were set for the same tokens.")

  @OptionGroup var scope: ScopeOptions
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: "removeSettings", body: try scope.members())
  }
}

struct SetPostureRules: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Sign rules about the posture of provers, which they fetch.",
    discussion: """
      The file is JSON: "number", "default" and "unknown" (each ignore, warn, refuse or wipe), "rules" with the names of findings, and \
      optionally "until" in Unix seconds. The number must be above that of the present rules. Provers install the rules with \
      holdfast posture --rules-from.
      """)

  @Argument(help: "The rules, as JSON.", completion: .file()) var file: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: file, limit: 1 << 16) } catch {
      throw ServiceFailure(error, hint: nil)
    }
    do throws(JSONMistake) {
      return OperationCall(
        name: "setPostureRules", body: try JSONMember(parsing: bytes).members().map { ($0, $1.value) })
    } catch { throw ServiceFailure(.malformed, error.text(in: file)) }
  }
}

struct ShowPostureRules: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the newest rules about the posture of provers.")

  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall { OperationCall(name: "showPostureRules") }
}
#endif
