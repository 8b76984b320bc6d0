import ArgumentParser
import HoldfastCore
import HoldfastIssuer
import HoldfastJSON
import HoldfastKeys
import HoldfastMeasurement
import HoldfastOpenSSL

struct Service: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "The simulated attestation service and backend.",
    examples: [
      "holdfast service init --dir service",
      "holdfast service show --dir service --json > service.json",
    ],
    subcommands: [ServiceInit.self, ServiceShow.self, ServiceApprove.self, ServiceRevoke.self, ServiceMACKey.self])
}

/// Where the service is.
struct ServiceOptions: ParsableArguments {
  @Option(help: "The service's folder.", completion: .directory)
  var dir: String

  var folder: ServiceFolder { ServiceFolder(path: dir) }
}

/// Runs a step on a service's folder.
func serving<Result: ~Copyable>(
  _ folder: String, _ body: () throws(ServiceFolderFault) -> Result
) throws(Failure) -> Result {
  do throws(ServiceFolderFault) { return try body() } catch { throw Failure(error, folder: folder) }
}

struct ServiceInit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make a service: fresh keys, and a policy that approves this program's image.",
    examples: [
      "holdfast service init --dir service",
      "holdfast service init --dir service --image /usr/local/bin/holdfast",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "Approve this image instead of this program's own; may be repeated.", completion: .file())
  var image: [String] = []

  @Flag(help: "Sign attestation tokens with a key of their own (ES256) instead of the account secret (HS256).")
  var es256 = false

  mutating func perform() throws(Failure) {
    var policy = ServicePolicy()
    policy.imageDigests = try (image.isEmpty ? ["/proc/self/exe"] : image)
      .map { (path) throws(Failure) in try imageDigest(path) }
    var keys = ByteBuffer<4096>()
    for index in 0..<BuiltInKeys.count {
      do throws(EncodingFault) {
        try BuiltInKeys.key(at: index).withBytes { (bytes) throws(EncodingFault) in try keys.append(bytes) }
      } catch { throw Failure(.fault, "too many measurement proof keys are built in") }
    }
    let (path, signature) = (service.dir, es256 ? ServiceFolder.AttestationSignature.es256 : .hs256)
    let folder: ServiceFolder
    do throws(ServiceFolderFault) {
      folder = try ServiceFolder.create(at: path, proofKeys: keys.bytes, policy: policy, signature: signature)
    } catch { throw Failure(making: error, folder: path) }
    if BuiltInKeys.isDevelopmentKey { Console.warnOfDevelopmentKey() }
    try show(folder, json: output.json)
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

struct ServiceApprove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "approve", abstract: "Approve one more image, and register this build's measurement proof keys.",
    examples: [
      "holdfast service approve --dir service /usr/local/bin/holdfast"
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The executable file of an app; this program's own when absent.", completion: .file())
  var image: String?

  mutating func perform() throws(Failure) {
    let folder = service.folder
    let digest = try imageDigest(image ?? "/proc/self/exe")
    var policy = try serving(service.dir) { () throws(ServiceFolderFault) in try folder.policy() }
    if !policy.imageDigests.contains(digest) { policy.imageDigests.append(digest) }
    try serving(service.dir) { () throws(ServiceFolderFault) in
      try folder.write(policy)
      for index in 0..<BuiltInKeys.count { try folder.register(BuiltInKeys.key(at: index)) }
    }
    if output.json {
      Console.result(.object([("image", .string(hexadecimal(digest)))]))
    } else {
      Console.result("approved image \(hexadecimal(digest))")
    }
  }
}

struct ServiceRevoke: Verb {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Raise a device's generation: once it sees a newer token, older ones are revoked.",
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
    do throws(LedgerFault) { generation = try backend.revoke(descriptor.deviceID) } catch {
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
  let keyID = try IssuerKey.signing(issuer.point).keyID()
  if json {
    Console.result(
      .object([("issuer", issuer.json), ("kid", .string(hexadecimal(keyID))), ("policy", policy.json)]))
    return
  }
  Console.result("issuer key id  \(hexadecimal(keyID))")
  for digest in policy.imageDigests { Console.result("image          \(hexadecimal(digest))") }
}

/// The `app.image` component of an executable file.
private func imageDigest(_ path: String) throws(Failure) -> Digest {
  do throws(MeasurementError) { return try ExecutableImage.digest(of: path) } catch {
    throw Failure(.malformed, "\(path) cannot be read as an image")
  }
}
