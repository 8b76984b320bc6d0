#if Service
import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastService

struct AddDevice: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Register a device with its key, or change its label.",
    discussion: """
      If the policy has "device_makers", a new device needs the signature of one of them over the file with its descriptor.
      """)

  @Argument(help: "The descriptor, as holdfast device show --json prints it.", completion: .file()) var descriptor:
    String
  @Option(help: "A description for operators, at most 64 bytes.") var label: String?
  @Option(help: "A group of the device, which has it in device.json too; may be repeated, at most 8 times.")
  var group: [String] = []
  @Option(help: "The number of revoked tokens that the device can keep. By default, 100000.")
  var revocationCapacity: UInt64?
  @Option(help: "The maker's signature of the descriptor, as openssl dgst writes it.", completion: .file())
  var signature: String?
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: descriptor, limit: 8192) } catch {
      throw ServiceFailure(error)
    }
    let signed = try signed(bytes)
    do throws(JSONFault) {
      let device = try JSONValue(parsing: bytes, byteLimit: 8192)
      return OperationCall(
        name: "addDevice",
        body: [("device", device)] + (label.map { [("label", .string($0))] } ?? []) + signed
          + delivery(groups: group.isEmpty ? nil : group, capacity: revocationCapacity))
    } catch {
      throw ServiceFailure(
        .malformed, "\(descriptor) is not a device's descriptor", hint: "holdfast device show --json prints one")
    }
  }

  private func signed(_ descriptor: [UInt8]) throws(ServiceFailure) -> [(String, JSONValue)] {
    guard let signature else { return [] }
    let text = String(validating: descriptor, as: UTF8.self) ?? ""
    return [("signed_descriptor", .string(text)), ("signature", .string(try base64(ofSignature: signature)))]
  }
}

/// The members of a body for the way in which bulletins reach a device.
private func delivery(groups: [String]?, capacity: UInt64?) -> [(String, JSONValue)] {
  (groups.map { [("groups", .array($0.map { .string($0) }))] } ?? [])
    + (capacity.map { [("revocation_capacity", .integer($0))] } ?? [])
}

struct SetGroups: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "groups", abstract: "Set the groups of a device, whose bulletins it takes.",
    discussion: """
      The revocations for a device are in the bulletins of its first group, or in bulletins of its own if it has no group. The device \
      must have the same groups in device.json.
      """)

  @Argument(help: "The device's id.") var id: String
  @Argument(help: "The groups, at most 8, in place of those before.") var group: [String] = []
  @Flag(help: "Remove the device from all groups.") var none = false
  @Option(help: "The number of revoked tokens that the device can keep.") var revocationCapacity: UInt64?
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    guard group.isEmpty || !none, !group.isEmpty || none || revocationCapacity != nil else {
      throw ServiceFailure(.usage, "name the groups, or say --none", hint: nil)
    }
    let groups = group.isEmpty && !none ? nil : group
    return OperationCall(name: "setGroups", key: id, body: delivery(groups: groups, capacity: revocationCapacity))
  }
}

/// Reads a maker's signature, as `openssl dgst -sha256 -sign` writes it.
func base64(ofSignature file: String) throws(ServiceFailure) -> String {
  do throws(FileError) {
    return paddedBase64(try Files.readFile(at: file, limit: MakerSignature.maximumByteCount))
  } catch { throw ServiceFailure(error, hint: nil) }
}

struct ChangeDeviceUser: AdministrationVerb {
  enum Change: String, ExpressibleByArgument, CaseIterable {
    case lock, remove, forget

    var operation: String { rawValue + "DeviceUser" }
  }

  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Lock or remove a user of a device, or withdraw that.",
    discussion: """
      The next bulletin for the device says so, encrypted to it, and provers bring it there. It counts for a device that has such a user, \
      and stays in later bulletins until forget withdraws it: withdraw it before the owner adds a user of the same name. A \
      microcontroller refuses such a bulletin, and misses every later one for its own id.
      """)

  @Argument(help: "The change.") var change: Change
  @Argument(help: "The device: its id or its label.") var device: String
  @Argument(help: "The name of the user at the device, at most 32 bytes.") var user: String
  @Option(help: "The time until which the user is locked, such as 2027-01-31T00:00:00Z; by default for ever.")
  var until: String?
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    guard until == nil || change == .lock else { throw ServiceFailure(.usage, "only lock takes --until") }
    var body: [(String, JSONValue)] = [("user", .string(user))]
    if let until = try unixSeconds(until, of: "--until") { body.append(("until", .integer(until))) }
    return OperationCall(name: change.operation, key: try fleet.device(named: device), body: body)
  }
}

struct RaiseMinimumVersion: AdministrationVerb {
  static let configuration = CommandConfiguration(
    commandName: "minimum-version", abstract: "Raise the minimum version of an app for a device or a group, for ever.",
    discussion: """
      The next bulletin for the device or the group says so. Devices that have it refuse tokens of older versions: provers need the new \
      version and a new token. A minimum version only rises. Microcontrollers take none: the bulletin is too much for them, and they miss \
      every later one for the same device or group, so choose one without microcontrollers.
      """)

  @Argument(help: "The name of the app, as its executables were approved.") var app: String
  @Argument(help: "The least version that counts, three numbers.") var version: String
  @Option(help: "The device: its id or its label.") var device: String?
  @Option(help: "The group, in place of a device.") var group: String?
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    guard (device == nil) != (group == nil) else {
      throw ServiceFailure(.usage, "a minimum version is for a device or for a group", hint: "give --device or --group")
    }
    var body: [(String, JSONValue)] = [
      ("app", .string(app)), ("version", try versionNumbers(version, of: "the version")),
    ]
    if let device { body.append(("device", .string(try fleet.device(named: device)))) }
    if let group { body.append(("group", .string(group))) }
    return OperationCall(name: "raiseMinimumVersion", body: body)
  }

  func illustrate(_ result: JSONValue, _ configuration: ServiceConfiguration) throws(ServiceFailure) {
    Output.note("microcontrollers take no minimum versions, and miss later bulletins for the same device or group")
  }
}

struct ChangeDevice: AdministrationVerb {
  enum Change: String, ExpressibleByArgument, CaseIterable {
    case block, unblock
    case raiseGeneration = "raise-generation"

    var operation: String {
      switch self {
      case .block: "blockDevice"
      case .unblock: "unblockDevice"
      case .raiseGeneration: "raiseGeneration"
      }
    }
  }

  static let configuration = CommandConfiguration(
    commandName: "change", abstract: "Block or unblock a device, or raise its generation.")

  @Argument(help: "The change.") var change: Change
  @Argument(help: "The device's id.") var id: String
  @OptionGroup var instance: InstanceOptions
  @Flag(help: "Print one JSON object.") var json = false

  func operation(_ fleet: Fleet) throws(ServiceFailure) -> OperationCall {
    OperationCall(name: change.operation, key: id)
  }
}
#endif
