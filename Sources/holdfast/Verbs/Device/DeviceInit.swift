import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFirmware
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DeviceInit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Create a device: its key, id and ledger, and a policy for the simulated lock.",
    discussion: """
      With --firmware, the command writes an image of a microcontroller's flash, for a board or an emulator. The image \
      contains the private key: anyone who can read the file can impersonate the device.
      """,
    examples: [
      "holdfast device init --dir lock",
      "holdfast device init --dir lock --trust service.json --tpm /dev/tpmrm0",
      "holdfast device init --dir lock --tpm-key /dev/tpmrm0 --or-key-file",
      "holdfast device init --firmware lock.bin --trust service.json \\\n--policy policy.json",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Option(
    help: "A file with the key of an issuer to trust, as device trust accepts it; may be repeated.",
    completion: .file())
  var trust: [String] = []

  @Option(help: "A file with the policy, instead of the one for the simulated lock.", completion: .file())
  var policy: String?

  @Option(
    help:
      "Anchor the device in this TPM, such as /dev/tpmrm0 or the socket of swtpm: a counter there reveals old copies.",
    completion: .file())
  var tpm: String?

  @Option(
    help: "Make the device's key in this TPM, which it never leaves, instead of the file device.key.",
    completion: .file())
  var tpmKey: String?

  @Flag(help: "If there is no TPM for --tpm-key, keep the key in a file all the same, and say so.")
  var orKeyFile = false

  @Option(
    help:
      "Accept only policies that this public key signed; --policy is then a signed one, from service device-policy.",
    completion: .file())
  var policyKey: String?

  @Option(help: "A group of devices that the device belongs to, for bulletins; may be repeated, at most 8 times.")
  var group: [String] = []

  mutating func perform() throws(Failure) {
    let place = try device.place()
    if case .image = place, tpm != nil || tpmKey != nil {
      throw Failure(
        .usage, "--tpm and --tpm-key do not work with --firmware: such a board has no TPM", hint: "leave them out")
    }
    if case .image = place, policyKey != nil {
      throw Failure(.usage, "--policy-key does not work with --firmware: an image contains its policy")
    }
    guard tpmKey != nil || !orKeyFile else { throw Failure(.usage, "--or-key-file requires --tpm-key") }
    if let policyKey, case .folder(let path) = place {
      return try report(makeFolder(path, signedWith: try P256Point(policyKey: policyKey)))
    }
    let policy = try policy.map { (path) throws(Failure) in try DevicePolicy(file: path) } ?? .forSimulatedLock
    switch place {
    case .folder(let path): try report(makeFolder(path, policy))
    case .image(let path): try report(makeImage(path, policy))
    }
  }

  /// Makes a device that accepts only signed policies. An interruption leaves one that denies everything.
  private func makeFolder(_ path: String, signedWith key: P256Point) throws(Failure) -> DeviceFolder {
    let text = try policy.map { (file) throws(Failure) in
      try Input.read(file, limit: SignedPolicy.maximumByteCount)
    }
    let folder = try makeFolder(path, .denyAll, signedWith: key)
    guard let text else {
      Console.note("it denies everything until holdfast device policy --install gives it a signed policy")
      return folder
    }
    let ledger = try folder.ledger()
    do throws(PolicyFault) { _ = try folder.install(signedPolicy: text, in: ledger) } catch {
      throw Failure(inForce: error, in: policy ?? "")
    }
    return folder
  }

  private func makeFolder(
    _ path: String, _ policy: DevicePolicy, signedWith key: P256Point? = nil
  ) throws(Failure) -> DeviceFolder {
    for file in trust { _ = try IssuerKey(file: file) }
    let groups = try groupNames(group)
    var random = SystemRandom()
    let folder: DeviceFolder
    do throws(DeviceFolderFault) {
      folder = try Self.create(path, policy, key, groups, tpm: tpm, keyTPM: tpmKey, orKeyFile: orKeyFile, &random)
    } catch { throw Failure(making: error, folder: path, tpm: error == .key(.notThere) ? tpmKey : tpm) }
    if tpmKey != nil, folder.tpmKey == nil {
      Console.note("there is no TPM: the device's key is in a file, which anyone who reads the folder can copy")
    }
    guard !trust.isEmpty else { return folder }
    let ledger = try folder.ledger()
    let now = SystemClock().unixSeconds()
    for file in trust {
      let issuer = try IssuerKey(file: file)
      try recording { () throws(LedgerFault) in try ledger.trust(issuer, realClock: now) }
    }
    try noteAgreementKeys(in: ledger)
    return folder
  }

  /// Creates the folder. A key in a file takes the place of one in a TPM only if there is no TPM.
  private static func create(
    _ path: String, _ policy: DevicePolicy, _ policyKey: P256Point?, _ groups: [BoundedText<32>], tpm: String?,
    keyTPM: String?, orKeyFile: Bool, _ random: inout SystemRandom
  ) throws(DeviceFolderFault) -> DeviceFolder {
    do throws(DeviceFolderFault) {
      return try DeviceFolder.create(
        at: path, policy: policy, tpm: tpm, keyTPM: keyTPM, policyKey: policyKey, groups: groups, random: &random,
        clock: SystemClock())
    } catch {
      guard orKeyFile, error == .key(.notThere) else { throw error }
      return try DeviceFolder.create(
        at: path, policy: policy, tpm: tpm, policyKey: policyKey, groups: groups, random: &random,
        clock: SystemClock())
    }
  }

  private func makeImage(
    _ path: String, _ policy: DevicePolicy
  ) throws(Failure) -> FirmwareImage {
    var issuers = IssuerTable()
    for file in trust {
      let issuer = try IssuerKey(file: file)
      let keyID = try issuer.keyID()
      guard issuers[keyID] != nil || issuers.append(keyID, issuer) else { throw Failure(LedgerFault.tooManyIssuers) }
    }
    let groups = try groupNames(group)
    var random = SystemRandom()
    let image: FirmwareImage
    do throws(FirmwareImageFault) {
      image = try FirmwareImage.create(
        at: path, policy: policy, trusting: issuers, groups: groups, random: &random, clock: SystemClock())
    } catch { throw Failure(making: error, image: path) }
    try noteAgreementKeys(in: image)
    return image
  }

  /// Records the keys for agreement that the trusted issuers announce. Standard input was read already.
  private func noteAgreementKeys(in ledger: some OwnerLedger) throws(Failure) {
    for file in trust where file != "-" {
      guard let agreement = try P256Point(agreementKeyOfIssuer: file) else { continue }
      let keyID = try IssuerKey(file: file).keyID()
      _ = try recording { () throws(LedgerFault) in try ledger.setAgreementKey(agreement, of: keyID) }
    }
  }

  private func report<Owned: OwnedDevice>(_ owned: Owned) {
    if output.json {
      Console.result(owned.descriptor.json)
    } else {
      Console.result("device \(hexadecimal(owned.descriptor.deviceID)) in \(owned.path)")
      if trust.isEmpty { Console.noteThatNobodyIsTrusted(by: owned) }
    }
  }
}

extension Console {
  static func noteThatNobodyIsTrusted<Owned: OwnedDevice>(by owned: Owned) {
    note("it trusts no issuer yet; next: holdfast device trust \(Owned.option) \(owned.path.shellWord) service.json")
  }
}

extension DevicePolicy {
  /// Reads a policy from a file; `-` is standard input.
  fileprivate init(file path: String) throws(Failure) {
    let bytes = try Input.read(path, limit: DevicePolicy.maximumByteCount)
    do throws(PolicyFault) { try self.init(json: bytes) } catch {
      throw Failure(.malformed, error.text(path), hint: "holdfast device policy prints a valid one")
    }
  }
}
