import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux

struct ServiceDevicePolicy: Verb {
  static let configuration = CommandConfiguration(
    commandName: "device-policy",
    abstract: "Sign the policy of devices with the issuer's key.",
    discussion: """
      The file is a policy.json, as device policy prints it. A device accepts the signed policy if its policy key is that of this \
      service (device policy --key), and if the number is higher than that of its present policy. The command does not remember \
      numbers.
      """,
    examples: [
      "holdfast service device-policy --dir owner policy.json \\\n--number 7 > policy.jws",
      "holdfast service device-policy --dir owner policy.json \\\n--number 8 --device lock.json > policy.jws",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The number of the policy, higher than that of any earlier one.")
  var number: UInt64

  @Option(
    help: "Only this device may accept it: its descriptor, or its id of 32 hexadecimal digits.", completion: .file())
  var device: String?

  @Argument(help: "The policy, as JSON; - is standard input.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    guard 1...maximumInteger ~= number else {
      throw Failure(.usage, "--number must be from 1 to \(maximumInteger)")
    }
    let id = try device.map { (argument) throws(Failure) in try DeviceID(argument: argument) }
    let bytes = try Input.read(file, limit: DevicePolicy.maximumByteCount)
    guard let now = SystemClock().unixSeconds() else { throw Failure(.fault, "there is no clock") }
    let claims: JSONValue
    do throws(PolicyFault) {
      claims = try SignedPolicy.claims(of: bytes, number: number, device: id, issued: now)
    } catch { throw Failure(error, file: file) }
    let folder = service.folder
    let text = try serving(service.dir) { () throws(ServiceFolderFault) in
      try folder.sign(document: claims, type: SignedPolicy.type)
    }
    let signed = String(decoding: text, as: UTF8.self)
    if output.json {
      Console.result(.object([("number", .integer(number)), ("policy", .string(signed))]))
    } else {
      Console.result(signed)
    }
  }
}
