import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastLinux

struct Service: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the simulated attestation service and backend.",
    examples: [
      "holdfast service init --dir service",
      "holdfast service show --dir service --json > service.json",
      "holdfast service device add --dir service lock.json",
    ],
    subcommands: [
      ServiceInit.self, ServiceShow.self, ServiceApprove.self, ServiceImages.self, ServiceUnapprove.self,
      ServiceDevice.self, ServiceRevoke.self, ServiceMACKey.self, ServicePostureRules.self,
      ServiceDevicePolicy.self, ServiceTokens.self, ServiceBulletin.self, ServiceAudit.self,
    ])
}

/// The option for the place of the service.
struct ServiceOptions: ParsableArguments {
  @Option(help: "The service's folder.", completion: .directory)
  var dir: String

  var folder: ServiceFolder { ServiceFolder(path: dir) }
}

/// Runs a step on a service's folder and converts its fault to a failure.
func serving<Result: ~Copyable>(
  _ folder: String, _ body: () throws(ServiceFolderFault) -> Result
) throws(Failure) -> Result {
  do throws(ServiceFolderFault) { return try body() } catch { throw Failure(error, folder: folder) }
}

struct ServiceInit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Create a service: fresh keys, and a policy that approves this program's image and registered devices.",
    discussion: "If the command is interrupted, run it again. It never overwrites an existing service.",
    examples: [
      "holdfast service init --dir service",
      "holdfast service init --dir service --image /usr/local/bin/holdfast",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var app: ApprovalOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "Approve this image instead of this program's own; may be repeated.", completion: .file())
  var image: [String] = []

  @Flag(help: "Sign attestation tokens with a separate key (ES256) instead of the account secret (HS256).")
  var es256 = false

  mutating func perform() throws(Failure) {
    var policy = ServicePolicy()
    var keys = ImageKeys()
    for path in image.isEmpty ? ["/proc/self/exe"] : image {
      let own = try app.keys(of: path)
      policy.approve(try app.approval(of: path, own))
      try keys.append(own)
    }
    let (path, signature) = (service.dir, es256 ? ServiceFolder.AttestationSignature.es256 : .hs256)
    let folder: ServiceFolder
    do throws(ServiceFolderFault) {
      folder = try ServiceFolder.create(at: path, releaseKeys: keys.bytes.bytes, policy: policy, signature: signature)
    } catch { throw Failure(making: error, folder: path) }
    keys.warnIfDefault()
    try show(folder, json: output.json)
    guard !output.json else { return }
    let dir = path.shellWord
    Console.note("next, for devices to trust it: holdfast service show --dir \(dir) --json > service.json")
    Console.note("then, to register each device: holdfast service device add --dir \(dir) DESCRIPTOR")
  }
}

struct ServiceShow: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a service; with --json also the issuer's public key, which devices trust.",
    examples: [
      "holdfast service show --dir service",
      "holdfast service show --dir service --json > service.json",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) { try show(service.folder, json: output.json) }
}

struct ServiceRevoke: Verb {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Raise a device's generation: once the device sees a newer token, older ones are revoked.",
    examples: [
      "holdfast service revoke --dir service --device lock.json"
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The device's descriptor, as device show --json prints it.", completion: .file())
  var device: String

  mutating func perform() throws(Failure) {
    let descriptor = try DeviceDescriptor(file: device)
    let folder = service.folder
    var backend = try serving(service.dir) { () throws(ServiceFolderFault) in try folder.backend() }
    let generation: UInt64
    do throws(ServiceLedgerFault) { generation = try backend.revoke(descriptor.deviceID) } catch {
      throw Failure(error, folder: service.dir)
    }
    if output.json {
      Console.result(.object([("generation", .integer(generation))]))
    } else {
      Console.result("generation \(generation)")
    }
  }
}

private func show(_ folder: ServiceFolder, json: Bool) throws(Failure) {
  let issuer = try serving(folder.path) { () throws(ServiceFolderFault) in try folder.issuerKey() }
  let policy = try serving(folder.path) { () throws(ServiceFolderFault) in try folder.policy() }
  let agreement = try serving(folder.path) { () throws(ServiceFolderFault) in try folder.agreementKey() }
  let keyID = try IssuerKey.signing(issuer.point).keyID()
  if json {
    Console.result(
      .object(
        [("issuer", issuer.json), ("kid", .string(hexadecimal(keyID)))]
          + (agreement.map { [("agreement", $0.json)] } ?? []) + [("policy", policy.json)]))
    return
  }
  Console.result("issuer key id  \(hexadecimal(keyID))")
  Console.result("devices        \(policy.devices.text)")
  for image in policy.images { Console.result("image          \(image.text)") }
}

extension DeviceAdmission {
  /// The devices that get tokens, for people.
  fileprivate var text: String {
    switch self {
    case .listed: "listed: those that are registered"
    case .firstCome: "first-come: all that are not blocked"
    }
  }
}

struct ServiceMACKey: Verb {
  static let configuration = CommandConfiguration(
    commandName: "mac-key",
    abstract: "Write the key that the issuer shares with one device, for tokens with a MAC instead of a signature.",
    discussion: """
      Anyone who reads the file can create tokens for that device. Carry it to the device secretly, pass it to device trust, \
      and delete it. The command always writes the same key for a device.
      """,
    examples: [
      "holdfast service mac-key --dir service --device lock.json mac.jwk"
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The device's descriptor, as device show --json prints it.", completion: .file())
  var device: String

  @Argument(help: "The file for the key. It must not exist.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    guard file != "-" else {
      throw Failure(.usage, "the key is secret and is not displayed", hint: "name a file for it")
    }
    let descriptor = try DeviceDescriptor(file: device)
    let folder = service.folder
    let key = try serving(service.dir) { () throws(ServiceFolderFault) in try folder.macKey(for: descriptor) }
    var text = ByteBuffer<512>()
    do throws(EncodingFault) { try MACKeyJWK.encode(key, into: &text) } catch {
      throw Failure(.fault, "the key could not be written")
    }
    do throws(FileError) { try Files.writeFileAtomically(text.bytes, at: file, overwrite: false) } catch {
      throw Failure(making: error)
    }
    let keyID = try IssuerKey.mac(key).keyID()
    if output.json {
      Console.result(.object([("kid", .string(hexadecimal(keyID))), ("file", .string(file))]))
    } else {
      Console.result("MAC key \(hexadecimal(keyID)) of device \(hexadecimal(descriptor.deviceID)) in \(file)")
    }
  }
}
