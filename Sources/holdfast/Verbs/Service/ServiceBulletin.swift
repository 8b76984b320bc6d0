import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

struct ServiceBulletin: Verb {
  static let configuration = CommandConfiguration(
    commandName: "bulletin",
    abstract: "Sign a bulletin for a device or a group of devices, which provers then carry there.",
    discussion: """
      A bulletin revokes tokens, raises generation or minimum versions, introduces or ends keys, and locks or removes users of one \
      device. The service keeps it for holdfast sync; --out also writes it to a file, for holdfast device bulletin. A device takes \
      the bulletins for an audience one after the other. With --complete, this one needs none before it and replaces them, so it \
      must say everything that still matters.
      """,
    examples: [
      "holdfast service bulletin --dir service --device lock.json \\\n--revoke 000102030405060708090a0b0c0d0e0f",
      "holdfast service bulletin --dir service --group north --minimum-version \\\nholdfast=1.4.0",
      "holdfast service bulletin --dir service --device lock.json \\\n--remove-user alice --out bulletin.cose",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The device: its descriptor, or its id of 32 hexadecimal digits.", completion: .file())
  var device: String?

  @Option(help: "Instead of a device: the name of a group, which its devices have in device.json.")
  var group: String?

  @Option(help: "A token to revoke, by its id, which holdfast service tokens lists; may be repeated.")
  var revoke: [String] = []

  @Option(
    help: "The time at which the revoked tokens expire anyway, such as 2028-01-01T00:00:00Z. By default, in 400 days.")
  var until: String?

  @Option(help: "The least generation of tokens that count.")
  var generation: UInt64?

  @Option(help: "The least version of an app: NAME=1.2.3; may be repeated, at most 16 times.")
  var minimumVersion: [String] = []

  @Option(
    help:
      "A file with a public key to introduce, which is trusted from now until --introduce-until; may be repeated, at most 4 times.",
    completion: .file())
  var introduce: [String] = []

  @Option(help: "The time from which introduced keys are no longer trusted.")
  var introduceUntil: String?

  @Option(
    help:
      "The id of a key that ends, 16 hexadecimal digits: the issuer's own, or one that it introduced; may be repeated.")
  var end: [String] = []

  @Option(help: "A user of the device to lock; may be repeated. The bulletin is then encrypted to the device.")
  var lockUser: [String] = []

  @Option(help: "A user of the device to remove; may be repeated. The bulletin is then encrypted to the device.")
  var removeUser: [String] = []

  @Flag(help: "Make a bulletin that needs none before it.")
  var complete = false

  @Option(help: "A file for the bulletin, which must not exist.", completion: .file())
  var out: String?

  mutating func perform() throws(Failure) {
    guard (device == nil) != (group == nil) else {
      throw Failure(.usage, "a bulletin is for a device or for a group", hint: "give --device or --group")
    }
    let now = try currentSeconds()
    let contents = try contents(now)
    guard contents.users.isEmpty || device != nil else {
      throw Failure(.usage, "--lock-user and --remove-user need --device: users are those of one device")
    }
    let audience = try audience()
    let point = try contents.users.isEmpty ? nil : registeredPoint(of: DeviceID(audience.bytes)!)
    let folder = service.folder
    var issuer = try serving(service.dir) { () throws(ServiceFolderFault) in try folder.trustedIssuer() }
    let writer: BulletinWriter
    do throws(CryptographyFailure) { writer = try BulletinWriter(of: issuer.signing.publicPoint) } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
    var random = SystemRandom()
    var (fault, isTooMuch): (BulletinFault?, Bool) = (nil, false)
    let isForOneFile = out != nil
    let (isDevice, isComplete) = (device != nil, complete)
    let issued = try changing(service) { (issued) throws(ServiceLedgerFault) in
      try issued.issueBulletins(for: audience, isDevice: isDevice, isComplete: isComplete) { last in
        do throws(BulletinFault) {
          let made = try writer.write(
            all: contents, for: audience, after: last, isComplete: isComplete || last == 0, milliseconds: now * 1000,
            sealedTo: point, key: &issuer.signing, random: &random)
          isTooMuch = isForOneFile && made.count > 1
          return isTooMuch ? nil : made
        } catch {
          fault = error
          return nil
        }
      }
    }
    guard !isTooMuch else {
      throw Failure(
        .usage, "it takes several bulletins, which --out cannot write", hint: "leave it out, and use holdfast sync")
    }
    guard let issued else {
      throw fault == .tooLong
        ? Failure(.usage, "a bulletin has at most 3072 bytes", hint: "say it in several")
        : Failure(.fault, "the bulletin could not be signed")
    }
    try report(issued)
  }

  private func report(_ issued: [IssuedBulletin]) throws(Failure) {
    if let out {
      let bytes = issued[0].bytes
      do throws(FileError) { try Files.writeFileAtomically(bytes, at: out, overwrite: false) } catch {
        throw Failure(making: error)
      }
    }
    for bulletin in issued {
      let (number, audience) = (bulletin.stamp.number, hexadecimal(bulletin.stamp.audience))
      if output.json {
        Console.result(
          .object([
            ("number", .integer(number)), ("predecessor", .integer(bulletin.stamp.predecessor)),
            ("audience", .string(audience)), ("bytes", .integer(UInt64(bulletin.bytes.count))),
          ]))
      } else {
        Console.result("bulletin \(number) for \(audience)")
      }
    }
  }

  private func audience() throws(Failure) -> AudienceID {
    if let device {
      let deviceID = try DeviceID(argument: device)
      return AudienceID(deviceID.bytes)!
    }
    let names = try groupNames([group ?? ""])
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try HoldfastCore.audience(ofGroup: names[0], using: &cryptography) } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
  }

  private func registeredPoint(of device: DeviceID) throws(Failure) -> P256Point {
    let point = try changing(service) { (issued) throws(ServiceLedgerFault) in
      try issued.registration(of: device)?.publicPoint
    }
    guard let point else {
      throw Failure(
        .denied, "device \(hexadecimal(device)) is not registered, so that nothing can be encrypted to it",
        hint: "register it: holdfast service device add")
    }
    return point
  }

  private func contents(_ now: UInt64) throws(Failure) -> BulletinContents {
    var contents = BulletinContents()
    let expires = try until.map { text throws(Failure) in try Timestamp(argument: text, of: "--until").unixSeconds }
    for text in revoke {
      guard let token: TokenID = fixedBytes(hexadecimal: text) else {
        throw Failure(.usage, "--revoke must have 32 hexadecimal digits")
      }
      contents.revoked[token] = expires ?? now + 400 * 86_400
    }
    contents.generation = generation
    for text in minimumVersion {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let name = BoundedText<64>(String(parts[0])), !name.isEmpty else {
        throw Failure(.usage, "--minimum-version must be NAME=1.2.3")
      }
      contents.minimumVersions[name] = try AppVersion(argument: String(parts[1]), of: "--minimum-version")
    }
    try addKeys(to: &contents, now)
    let removed = try names(removeUser, of: "--remove-user")
    for name in try names(lockUser, of: "--lock-user") { contents.users.updateValue(maximumInteger, forKey: name) }
    for name in removed { contents.users.updateValue(nil, forKey: name) }
    let isSmall = contents.minimumVersions.count <= 16 && contents.ended.count <= 16 && contents.users.count <= 32
    guard isSmall, contents.introduced.count <= 4 else {
      throw Failure(.usage, "that is more than one bulletin can say", hint: "say it in several")
    }
    return contents
  }

  private func addKeys(to contents: inout BulletinContents, _ now: UInt64) throws(Failure) {
    guard introduce.isEmpty == (introduceUntil == nil) else {
      throw Failure(.usage, "--introduce and --introduce-until go together")
    }
    for file in introduce {
      guard case .signing(let point) = try IssuerKey(file: file) else {
        throw Failure(.usage, "only a public key can be introduced")
      }
      let end = try Timestamp(argument: introduceUntil ?? "", of: "--introduce-until").unixSeconds
      guard end > now else { throw Failure(.usage, "--introduce-until is in the past") }
      contents.introduced.append(IntroducedKey(point: point, from: now, until: end))
    }
    for text in end {
      guard let keyID: KeyID = fixedBytes(hexadecimal: text) else {
        throw Failure(.usage, "--end must have 16 hexadecimal digits")
      }
      contents.ended.insert(keyID)
    }
  }

  private func names(_ texts: [String], of option: String) throws(Failure) -> [BoundedText<32>] {
    var names: [BoundedText<32>] = []
    for text in texts {
      guard let name = BoundedText<32>(text), !name.isEmpty else {
        throw Failure(.usage, "\(option) must have 1 to 32 bytes")
      }
      names.append(name)
    }
    return names
  }
}
