import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DevicePolicyVerb: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "policy",
    abstract: "Show what the device's owner allows, and whether the policy is in force; install a signed policy.",
    discussion: """
      The policy is the file policy.json in the device's folder. A running device applies changes at once. An image contains \
      the policy that was given to device init.

      With --key, the device accepts only policies that this key signed (service device-policy), in the file policy.jws. Each \
      later policy needs a higher number.
      """,
    examples: [
      "holdfast device policy --dir lock",
      "holdfast device policy --dir lock --json",
      "holdfast device policy --dir lock --key owner.json",
      "holdfast device policy --dir lock --install policy.jws",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "Put this signed policy in force; - is standard input.", completion: .file())
  var install: String?

  @Option(
    help: "From now on, accept only policies that this public key signed; no process may serve the device.",
    completion: .file())
  var key: String?

  @Flag(help: "Accept policy.json again, without a signature; no process may serve the device.")
  var removeKey = false

  func check() throws(Failure) {
    guard [install != nil, key != nil, removeKey].count(where: { $0 }) <= 1 else {
      throw Failure(.usage, "--install, --key and --remove-key exclude each other")
    }
  }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    if install != nil || key != nil || removeKey {
      guard let folder = owned as? DeviceFolder else {
        throw Failure(
          .usage,
          "--install, --key and --remove-key do not work with --firmware: a board has the policy of device init",
          hint: "leave them out")
      }
      if let install { return try put(install, in: folder) }
      return try setKey(in: folder)
    }
    let reading = try owned.policyReading(try owned.ledger())
    if reading.fault == .unreadable { try sayWhy(reading.file.path(in: owned.path)) }
    if let fault = reading.fault { throw Failure(inForce: fault, in: reading.file.rawValue) }
    for line in String(decoding: reading.policy.json(), as: UTF8.self).split(separator: "\n") {
      Console.result(String(line))
    }
  }

  private func put(_ file: String, in folder: DeviceFolder) throws(Failure) {
    let text = try Input.read(file, limit: SignedPolicy.maximumByteCount)
    let ledger = try folder.ledger()
    let policy: SignedPolicy
    do throws(PolicyFault) { policy = try folder.install(signedPolicy: text, in: ledger) } catch {
      throw Failure(error, file: file)
    }
    if output.json {
      Console.result(.object([("number", .integer(policy.number))]))
    } else {
      Console.result("policy \(policy.number) is in force in \(folder.path)")
    }
  }

  private func setKey(in folder: DeviceFolder) throws(Failure) {
    let point = try key.map { (file) throws(Failure) in try P256Point(policyKey: file) }
    let hasChanged: Bool
    do throws(DeviceFolderFault) {
      hasChanged = try folder.setPolicyKey(point, realClock: SystemClock().unixSeconds())
    } catch { throw Failure(error, folder: folder.path) }
    if output.json {
      Console.result(.object([("changed", .bool(hasChanged)), ("signed", .bool(point != nil))]))
      return
    }
    let state = point == nil ? "policy.json without a signature" : "only policies that this key signed"
    Console.result("the device accepts \(state)\(hasChanged ? "" : ", as before")")
    let reading = try folder.policyReading(folder.ledger())
    if reading.fault != nil { Console.note("until one is installed, the device denies everything") }
  }

  /// Reads the file again, as a device does, and reports why it cannot be read.
  private func sayWhy(_ path: String) throws(Failure) {
    do throws(FileError) {
      _ = try Files.readFile(
        at: path, limit: SignedPolicy.maximumByteCount, requirements: [.owned, .noSymbolicLink])
    } catch { throw Failure(error, hint: "restore it; until then the device denies everything") }
  }
}

extension P256Point {
  /// Reads the public key for policies from a file.
  init(policyKey file: String) throws(Failure) {
    guard case .signing(let point) = try IssuerKey(file: file) else {
      throw Failure(.malformed, "\(file) is a secret key, but a key for policies is a public one")
    }
    self = point
  }
}
