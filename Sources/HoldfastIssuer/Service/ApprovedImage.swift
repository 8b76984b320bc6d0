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
  /// - Throws: the member that is wrong.
  init(_ name: String, _ image: JSONMember) throws(JSONMistake) {
    guard let digest: Digest = fixedBytes(hexadecimal: name) else { throw image.mistake(.hexadecimal(digitCount: 64)) }
    try image.checkMembers(["subject", "version"])
    let subject: BoundedText<64> = try image.required("subject").boundedText()
    var numbers: [UInt64] = []
    for number in try image.required("version").elements(count: 3) { numbers.append(try number.integer()) }
    self.init(
      digest: digest, subject: subject, version: AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2]))
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
