import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastLinux

struct ServiceApprove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "approve",
    abstract: "Approve an app's image with a name and version, and register the keys of its release.",
    discussion: """
      Tokens for this image carry this name and version, regardless of what the app claims. The image belongs to the newest \
      release in the key file: only evidence with the keys of that release counts for it. An interpreter (such as Python or a \
      shell) runs any program, so it can be approved only with the default key.
      """,
    examples: [
      "holdfast service approve --dir service ./app --subject app --version 1.2.3",
      "holdfast service approve --dir service ./app --subject app --version 1.2.3 \\\n--proof-keys ../app/mpk.key",
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
    let keys = try app.keys(of: image ?? "/proc/self/exe")
    let approval = try app.approval(of: image ?? "/proc/self/exe", keys)
    let former = try serving(service.dir) { () throws(ServiceFolderFault) in
      try folder.changing { () throws(ServiceFolderFault) in
        var policy = try folder.policy()
        let former = policy.approve(approval)
        try keys.register(with: folder)
        if former != approval { try folder.write(policy) }
        return former
      }
    }
    keys.warnIfDefault()
    try app.noteLibrary(of: image ?? "/proc/self/exe")
    if output.json {
      Console.result(approval.json)
    } else {
      if let former, former != approval { Console.note("it was approved before, as \(former.text)") }
      Console.result("approved image \(approval.text)")
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
    if let given: Digest = fixedBytes(hexadecimal: image) {
      digest = given
    } else {
      digest = try imageDigests(image).flat
    }
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

extension ApprovedImage {
  /// The digest, name and version, and the release's key if it is not the default one.
  var text: String {
    "\(hexadecimal(digest))  \(version.text)  \(subject)" + (proofKey.map { "  key \(hexadecimal($0))" } ?? "")
  }

  var json: JSONValue {
    .object(
      [
        ("image", .string(hexadecimal(digest))), ("subject", .string(subject.description)),
        ("version", .array([version.major, version.minor, version.patch].map { .integer($0) })),
      ] + (proofKey.map { [("proof_key", .string(hexadecimal($0)))] } ?? [])
        + (tree.map { [("tree_digest", .string(hexadecimal($0)))] } ?? []))
  }
}

/// Computes the `app.image` component of an executable file, in both forms.
func imageDigests(_ path: String) throws(Failure) -> (flat: Digest, tree: Digest) {
  do throws(MeasurementError) { return try ExecutableImage.digests(of: path) } catch {
    guard case .malformed = error else { throw Failure(.malformed, "\(path) cannot be read as an image") }
    throw Failure(
      .malformed, "\(path) is not an executable program (ELF)",
      hint: "give the app's executable file, not a script or text file")
  }
}
