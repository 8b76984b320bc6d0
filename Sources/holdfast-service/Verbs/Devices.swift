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
