import HoldfastCore
import HoldfastJSON
import HoldfastKeys

/// An executable that the service approves, with the name and the version that its tokens carry.
///
/// Name and version are the owner's, never the app's: an old release could claim to be a newer one.
public struct ApprovedImage: Sendable, Equatable {
  /// SHA-256: the component `app.image`, 32 bytes.
  public let digest: Digest
  /// `sub` of its tokens, text of 1 to 64 bytes.
  public let subject: BoundedText<64>
  /// `ver` of its tokens, three numbers of at most 2^53 - 1.
  public let version: AppVersion

  /// An approved image.
  public init(digest: Digest, subject: BoundedText<64>, version: AppVersion) {
    (self.digest, self.subject, self.version) = (digest, subject, version)
  }

  /// Reads the member `"<64 hex digits>": {"subject": …, "version": [1, 2, 3]}` of a policy's `images`.
  ///
  /// - Throws: `member` with the path of the member that is wrong.
  init(_ name: String, _ value: JSONValue) throws(ServicePolicyFault) {
    let path = "images.\(name)"
    guard let digest: Digest = fixedBytes(hexadecimal: name) else { throw .member(path) }
    guard let members = value.members else { throw .member(path) }
    for (name, _) in members where !["subject", "version"].contains(where: { haveSameBytes($0, name) }) {
      throw .member("\(path).\(name)")
    }
    guard let subject: BoundedText<64> = value["subject"]?.text.flatMap(BoundedText.init), !subject.isEmpty else {
      throw .member("\(path).subject")
    }
    guard let numbers = value["version"]?.elements?.map(\.number), numbers.count == 3, let major = numbers[0],
      let minor = numbers[1], let patch = numbers[2], max(major, minor, patch) <= maximumInteger
    else { throw .member("\(path).version") }
    self.init(digest: digest, subject: subject, version: AppVersion(major: major, minor: minor, patch: patch))
  }

  /// The member of `images`.
  var member: (String, JSONValue) {
    (
      hexadecimal(digest),
      .object([
        ("subject", .string(subject.description)),
        ("version", .array([version.major, version.minor, version.patch].map { .integer($0) })),
      ])
    )
  }
}

extension ServicePolicy {
  /// Approves an image, or gives an approved one another name and version.
  ///
  /// - Returns: the approval that this one replaces; nil where there was none.
  @discardableResult
  public mutating func approve(_ image: ApprovedImage) -> ApprovedImage? {
    guard let index = images.firstIndex(where: { $0.digest == image.digest }) else {
      images.append(image)
      return nil
    }
    defer { images[index] = image }
    return images[index]
  }

  /// Takes an approval back.
  ///
  /// - Returns: the approval; nil where there was none.
  @discardableResult
  public mutating func unapprove(_ digest: Digest) -> ApprovedImage? {
    images.firstIndex { $0.digest == digest }.map { images.remove(at: $0) }
  }
}
