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
        name: "addDevice", body: [("device", device)] + (label.map { [("label", .string($0))] } ?? []) + signed)
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

/// Reads a maker's signature, as `openssl dgst -sha256 -sign` writes it.
func base64(ofSignature file: String) throws(ServiceFailure) -> String {
  do throws(FileError) {
    let signature = try Files.readFile(at: file, limit: MakerSignature.maximumByteCount)
    var text: [UInt8] = []
    text.append(asPaddedBase64: signature.span)
    return String(decoding: text, as: UTF8.self)
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
