import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastStorage

struct ServiceApprove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "approve",
    abstract: "Approve an app's image with a name and version, and register the keys of its release.",
    discussion: "Tokens for this image carry this name and version, regardless of what the app claims.",
    examples: [
      "holdfast service approve --dir service ./app --subject app --version 1.2.3",
      "holdfast service approve --dir service ./app --subject app --version 1.2.3 \\\n--mpk-key ../app/mpk.key",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var app: ApprovalOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The executable file of an app; by default, this program's own.", completion: .file())
  var image: String?

  mutating func perform() throws(Failure) {
    let folder = service.folder
    if image != nil, app.subject == nil || app.version == nil {
      throw Failure(
        .usage, "an image needs a name and a version", hint: "add --subject NAME --version 1.2.3")
    }
    let approval = try app.approval(of: image ?? "/proc/self/exe")
    let keys = try app.releaseKeys()
    let former = try serving(service.dir) { () throws(ServiceFolderFault) in
      try folder.changing { () throws(ServiceFolderFault) in
        var policy = try folder.policy()
        let former = policy.approve(approval)
        try register(keys.bytes, folder)
        if former != approval { try folder.write(policy) }
        return former
      }
    }
    app.warnOfDevelopmentKey()
    if output.json {
      Console.result(approval.json)
    } else {
      if let former, former != approval { Console.note("it was approved before, as \(former.text)") }
      Console.result("approved image \(approval.text)")
    }
  }

  private func register(_ keys: Span<UInt8>, _ folder: ServiceFolder) throws(ServiceFolderFault) {
    for start in stride(from: 0, to: keys.count, by: ReleaseKeyRegistry.releaseByteCount) {
      guard let proofKey = MeasurementProofKey(copying: keys.extracting(start..<start + 16)),
        let evidenceKey = EvidenceKey(copying: keys.extracting(start + 16..<start + 48))
      else { throw .key(.releaseKeys) }
      try folder.register(proofKey, evidenceKey)
    }
  }
}

struct ServiceImages: Verb {
  static let configuration = CommandConfiguration(
    commandName: "images", abstract: "List the approved images with their names and versions.",
    examples: ["holdfast service images --dir service"])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let folder = service.folder
    let policy = try serving(service.dir) { () throws(ServiceFolderFault) in try folder.policy() }
    if output.json {
      Console.result(.object([("images", .array(policy.images.map(\.json)))]))
      return
    }
    for image in policy.images { Console.result(image.text) }
    if policy.images.isEmpty { Console.note("no image is approved") }
  }
}

struct ServiceUnapprove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unapprove", abstract: "Withdraw an approval: apps with that image are no longer attested.",
    discussion: "Issued tokens stay valid until they expire or are revoked at a device.",
    examples: ["holdfast service unapprove --dir service ./app"])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The executable file of an app, or its digest of 64 hexadecimal digits.", completion: .file())
  var image: String

  mutating func perform() throws(Failure) {
    let digest: Digest
    if let given: Digest = fixedBytes(hexadecimal: image) { digest = given } else { digest = try imageDigest(image) }
    let folder = service.folder
    let former = try serving(service.dir) { () throws(ServiceFolderFault) in
      try folder.changing { () throws(ServiceFolderFault) in
        var policy = try folder.policy()
        let former = policy.unapprove(digest)
        if former != nil { try folder.write(policy) }
        return former
      }
    }
    if output.json {
      Console.result(.object([("image", .string(hexadecimal(digest))), ("was_approved", .bool(former != nil))]))
    } else if let former {
      Console.result("no longer approved: \(former.text)")
      Console.note("its tokens stay valid until they expire; to revoke them at a device: holdfast service revoke")
    } else {
      Console.note("the image \(hexadecimal(digest)) was not approved, and nothing changed")
    }
  }
}

/// The options for the name and version of an approved image, and for the keys that authenticate its evidence.
struct ApprovalOptions: ParsableArguments {
  @Option(help: "The app's name, at most 64 bytes; by default holdfast, for this program's own image.")
  var subject: String?

  @Option(help: "The app's version, three numbers; by default 0.0.0, for this program's own image.")
  var version: String?

  @Option(
    help: "The key file that the image was built with, mpk.key of its package; by default, this program's own keys.",
    completion: .file())
  var mpkKey: String?

  func approval(of path: String) throws(Failure) -> ApprovedImage {
    ApprovedImage(
      digest: try imageDigest(path), subject: try appName(subject ?? "holdfast", of: "--subject"),
      version: try AppVersion(argument: version ?? "0.0.0", of: "--version"))
  }

  /// Returns the keys of all releases, 48 bytes each.
  func releaseKeys() throws(Failure) -> ByteBuffer<12288> {
    var keys = ByteBuffer<12288>()
    guard let mpkKey else {
      for index in 0..<BuiltInKeys.count {
        try Self.append(BuiltInKeys.key(at: index), BuiltInKeys.evidenceKey(at: index), to: &keys)
      }
      return keys
    }
    let roots = try Self.roots(mpkKey)
    var cryptography = OpenSSLCryptography()
    for index in 0..<roots.count {
      let root = roots.root(at: index)
      let proofKey = try Self.derived { () throws(CryptographyFailure) in
        try measurementProofKey(of: root, using: &cryptography)
      }
      let evidenceKey = try Self.derived { () throws(CryptographyFailure) in
        try HoldfastCore.evidenceKey(of: root, using: &cryptography)
      }
      try Self.append(proofKey, evidenceKey, to: &keys)
    }
    return keys
  }

  private static func derived<let count: Int>(
    _ body: () throws(CryptographyFailure) -> Secret<count>
  ) throws(Failure) -> Secret<count> {
    do throws(CryptographyFailure) { return try body() } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
  }

  private static func append(
    _ proofKey: borrowing MeasurementProofKey, _ evidenceKey: borrowing EvidenceKey, to keys: inout ByteBuffer<12288>
  ) throws(Failure) {
    do throws(EncodingFault) {
      try proofKey.withBytes { (bytes) throws(EncodingFault) in try keys.append(bytes) }
      try evidenceKey.withBytes { (bytes) throws(EncodingFault) in try keys.append(bytes) }
    } catch { throw Failure(.fault, "there are too many releases") }
  }

  /// Reads the roots in a key file, which must belong to this user and be inaccessible to others.
  private static func roots(_ path: String) throws(Failure) -> ReleaseRoots {
    let text: SecretBytes
    do throws(FileError) {
      text = try Files.readSecretFile(at: path, limit: ReleaseRoots.maximumByteCount) { SecretBytes(copying: $0) }
    } catch { throw Failure(error) }
    do throws(KeyFileFault) { return try ReleaseRoots(parsing: text.bytes) } catch {
      switch error {
      case .notAKey(let line):
        throw Failure(.malformed, "\(path), line \(line): a key is 32 hexadecimal digits")
      case .repeated(let line): throw Failure(.malformed, "\(path), line \(line): this key occurs twice")
      case .noKey: throw Failure(.malformed, "\(path) has no key")
      case .tooMany: throw Failure(.malformed, "\(path) has more than \(ReleaseRoots.maximumCount) keys")
      }
    }
  }

  func warnOfDevelopmentKey() {
    if mpkKey == nil { BuiltInKeys.warnOfDevelopmentKey() }
  }
}

extension ApprovedImage {
  /// The digest, name and version.
  var text: String { "\(hexadecimal(digest))  \(version.text)  \(subject)" }

  var json: JSONValue {
    .object([
      ("image", .string(hexadecimal(digest))), ("subject", .string(subject.description)),
      ("version", .array([version.major, version.minor, version.patch].map { .integer($0) })),
    ])
  }
}

/// Computes the `app.image` component of an executable file.
func imageDigest(_ path: String) throws(Failure) -> Digest {
  do throws(MeasurementError) { return try ExecutableImage.digest(of: path) } catch {
    guard case .malformed = error else { throw Failure(.malformed, "\(path) cannot be read as an image") }
    throw Failure(
      .malformed, "\(path) is not an executable program (ELF)",
      hint: "give the app's executable file, not a script or text file")
  }
}
