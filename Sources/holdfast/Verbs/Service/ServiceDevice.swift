import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

struct ServiceDevice: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Manage the devices for which the service issues tokens.",
    discussion: """
      The member "devices" of the service's policy.json determines which devices get tokens. "listed": those that are \
      registered here. "first-come": all that are not blocked.
      """,
    examples: [
      "holdfast service device add --dir service lock.json --label 'front door'",
      "holdfast service device list --dir service",
    ],
    subcommands: [
      ServiceDeviceAdd.self, ServiceDeviceList.self, ServiceDeviceBlock.self, ServiceDeviceUnblock.self,
      ServiceDeviceRemove.self,
    ])
}

struct ServiceDeviceAdd: Verb {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Register a device, so that the service issues tokens for it.",
    discussion: """
      If the service's policy.json has "device_makers", a new device needs the signature of one of them over the file with its \
      descriptor.
      """,
    examples: [
      "holdfast service device add --dir service lock.json --label 'front door'",
      "holdfast service device add --dir service lock.json --signature lock.sig",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The device's descriptor, as device show --json prints it on the device.", completion: .file())
  var descriptor: String

  @Option(help: "A description of the device, at most 64 bytes.")
  var label: String?

  @Option(help: "The maker's signature of the descriptor, as openssl dgst writes it.", completion: .file())
  var signature: String?

  mutating func perform() throws(Failure) {
    let signed = try signedDescriptor()
    let device = if let signed { signed.device } else { try DeviceDescriptor(file: descriptor) }
    let label = try label.map { (text) throws(Failure) in
      guard let label = BoundedText<64>(text), !label.isEmpty else {
        throw Failure(.usage, "--label must have 1 to 64 bytes")
      }
      return label
    }
    let now = try currentSeconds()
    let makers = try serving(service.dir) { () throws(ServiceFolderFault) in try service.folder.policy().deviceMakers }
    let isPermitted = makers.isEmpty || signed?.isSignature(for: device, byOneOf: makers) == true
    let id = hexadecimal(device.deviceID)
    let registration = try changing(service) { (issued) throws(ServiceLedgerFault) -> DeviceRegistration? in
      if !isPermitted, try issued.registration(of: device.deviceID)?.publicPoint == nil { return nil }
      return try issued.register(device, label: label, now: now)
    }
    guard let registration else {
      throw Failure(
        .denied, "the service's policy demands a maker's signature over this device's descriptor",
        hint: "add --signature with what the maker delivered with the device")
    }
    guard registration != .anotherKey else {
      throw Failure(
        .denied, "device \(id) is registered with another key",
        hint:
          "if the new key is right, run holdfast service device remove --dir \(service.dir.shellWord) \(id), and add the device again"
      )
    }
    if output.json {
      Console.result(.object([("device_id", .string(id)), ("outcome", .string(registration.name))]))
      return
    }
    switch registration {
    case .added(let generation):
      Console.result("registered device \(id)")
      if let generation {
        Console.note("tokens for it were issued with another key; they are now revoked, by generation \(generation)")
      }
    case .relabelled: Console.result("device \(id) was already registered, and has a new label")
    case .unchanged, .anotherKey: Console.result("device \(id) was already registered")
    }
  }

  private func signedDescriptor() throws(Failure) -> SignedDescriptor? {
    guard let signature else { return nil }
    let text = try Input.read(descriptor, limit: PublicKeyJWK.maximumByteCount)
    let bytes = try Input.read(signature, limit: MakerSignature.maximumByteCount)
    do throws(KeyFault) { return try SignedDescriptor(text, signature: bytes) } catch {
      throw Failure(.malformed, "\(descriptor) is not a device's descriptor")
    }
  }
}

struct ServiceDeviceList: Verb {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the devices that are registered or blocked.",
    examples: ["holdfast service device list --dir service"])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let devices = try changing(service) { (issued) throws(ServiceLedgerFault) in try issued.registeredDevices() }
    if output.json {
      Console.result(.object([("devices", .array(try devices.map { (device) throws(Failure) in try device.json() }))]))
      return
    }
    for device in devices {
      let state = device.blocked != nil ? "blocked" : "listed "
      let label = device.label.map { "  \($0)" } ?? ""
      Console.result("\(hexadecimal(device.deviceID))  \(state)  \(try device.keyID() ?? "no key registered")\(label)")
    }
    if devices.isEmpty { Console.note("no device is registered") }
  }
}

struct ServiceDeviceBlock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "block", abstract: "Stop issuing tokens for a device, whether it is registered or not.",
    discussion: "Issued tokens stay valid until they expire or are revoked at the device.",
    examples: ["holdfast service device block --dir service lock.json"])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The device's descriptor, or its id of 32 hexadecimal digits.", completion: .file())
  var device: String

  mutating func perform() throws(Failure) {
    let id = try DeviceID(argument: device)
    let now = try currentSeconds()
    let isNew = try changing(service) { (issued) throws(ServiceLedgerFault) in try issued.block(id, now: now) }
    report(output, id, "blocked", hasChanged: isNew)
    if !output.json {
      Console.note("its tokens stay valid until they expire; to revoke them: holdfast service revoke")
    }
  }
}

struct ServiceDeviceUnblock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unblock",
    abstract: "Unblock a device, so that the service issues tokens for it again if the policy allows it.",
    examples: ["holdfast service device unblock --dir service lock.json"])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The device's descriptor, or its id of 32 hexadecimal digits.", completion: .file())
  var device: String

  mutating func perform() throws(Failure) {
    let id = try DeviceID(argument: device)
    let hasChanged: Bool? = try changing(service) { (issued) throws(ServiceLedgerFault) in
      guard try issued.knows(id) else { return nil }
      return try issued.unblock(id)
    }
    guard let hasChanged else { throw Failure(unknown: id, service.dir) }
    report(output, id, "not blocked", hasChanged: hasChanged)
  }
}

struct ServiceDeviceRemove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a device from the list. A block stays.",
    discussion: "Issued tokens stay valid until they expire or are revoked at the device.",
    examples: ["holdfast service device remove --dir service lock.json"])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The device's descriptor, or its id of 32 hexadecimal digits.", completion: .file())
  var device: String

  mutating func perform() throws(Failure) {
    let id = try DeviceID(argument: device)
    let hasChanged: Bool? = try changing(service) { (issued) throws(ServiceLedgerFault) in
      guard try issued.knows(id) else { return nil }
      return try issued.unregister(id)
    }
    guard let hasChanged else { throw Failure(unknown: id, service.dir) }
    report(output, id, "not registered", hasChanged: hasChanged)
  }
}

/// Reports the state of a device and whether it has changed.
private func report(_ output: OutputOptions, _ id: DeviceID, _ state: String, hasChanged: Bool) {
  if output.json {
    Console.result(.object([("device_id", .string(hexadecimal(id))), ("changed", .bool(hasChanged))]))
  } else {
    Console.result("device \(hexadecimal(id)) is \(state)\(hasChanged ? "" : ", as before")")
  }
}

/// Runs a step on the backend's durable record in one transaction.
func changing<Result>(
  _ service: ServiceOptions, _ body: (inout IssuedBaselinesDatabase) throws(ServiceLedgerFault) -> Result
) throws(Failure) -> Result {
  let folder = service.folder
  return try serving(service.dir) { () throws(ServiceFolderFault) in
    var issued = try folder.issuedBaselines()
    do throws(ServiceLedgerFault) { return try body(&issued) } catch { throw .ledger(error) }
  }
}

func currentSeconds() throws(Failure) -> UInt64 {
  guard let now = SystemClock().unixSeconds() else { throw Failure(.fault, "there is no clock") }
  return now
}

extension DeviceID {
  /// Parses a device id: 32 hexadecimal digits, or a file with a descriptor.
  init(argument: String) throws(Failure) {
    if let id: DeviceID = fixedBytes(hexadecimal: argument) {
      self = id
    } else {
      self = try DeviceDescriptor(file: argument).deviceID
    }
  }
}

extension Failure {
  /// Creates the failure for a device that the service does not know.
  fileprivate init(unknown id: DeviceID, _ folder: String) {
    self.init(
      .malformed, "the service knows no device \(hexadecimal(id))",
      hint: "to list the devices: holdfast service device list --dir \(folder.shellWord)")
  }
}

extension DeviceRegistration {
  fileprivate var name: String {
    switch self {
    case .added: "added"
    case .relabelled: "relabelled"
    case .unchanged: "unchanged"
    case .anotherKey: "anotherKey"
    }
  }
}

extension RegisteredDevice {
  /// Returns the key id of the registered key; nil if none is registered.
  fileprivate func keyID() throws(Failure) -> String? {
    guard let publicPoint else { return nil }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return hexadecimal(try HoldfastCore.keyID(of: publicPoint, using: &cryptography))
    } catch { throw Failure(.fault, "the cryptographic library failed") }
  }

  fileprivate func json() throws(Failure) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("device_id", .string(hexadecimal(deviceID))), ("listed", .bool(publicPoint != nil)),
      ("blocked", .bool(blocked != nil)),
    ]
    if let keyID = try keyID() { members.append(("kid", .string(keyID))) }
    if let label { members.append(("label", .string(label.description))) }
    if let added { members.append(("added", .integer(added))) }
    if let blocked { members.append(("blocked_since", .integer(blocked))) }
    return .object(members)
  }
}
