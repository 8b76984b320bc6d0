import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// An executable that the service approves, with the name and version that its tokens carry.
///
/// The owner sets the name and version, never the app: an old release could claim to be a newer one.
package struct ApprovedImage: Sendable, Equatable {
  /// The forms of the component `app.image` that are approved, the one under which the approval is listed first. An approval from
  /// before tree digests has only the flat one.
  package let digests: [ImageDigest]
  /// The claim `sub` of its tokens, text of 1 to 64 bytes.
  package let subject: BoundedText<64>
  /// The claim `ver` of its tokens, three numbers of at most 2^53 - 1.
  package let version: AppVersion

  /// The id of the measurement proof key of the image's release, whose keys its evidence must have; nil for the default key.
  package let proofKey: KeyID?

  /// Creates an approved image from SHA-256 of the executable, and its tree digest, where that is approved, too.
  package init(
    digest: Digest, tree: Digest? = nil, subject: BoundedText<64>, version: AppVersion, proofKey: KeyID? = nil
  ) {
    self.init([.flat(digest)] + (tree.map { [.tree($0)] } ?? []), subject, version, proofKey)
  }

  /// Creates the approval of an executable in one form only.
  init(_ image: ImageDigest, _ subject: BoundedText<64>, _ version: AppVersion, _ proofKey: KeyID?) {
    self.init([image], subject, version, proofKey)
  }

  private init(_ digests: [ImageDigest], _ subject: BoundedText<64>, _ version: AppVersion, _ proofKey: KeyID?) {
    (self.digests, self.subject, self.version, self.proofKey) = (digests, subject, version, proofKey)
  }

  /// The digest under which the approval is listed.
  package var digest: Digest { digests[0].digest }

  /// The tree digest that is approved in addition; nil if there is none.
  package var tree: Digest? { digests.dropFirst().first?.tree }

  /// Returns whether an executable is approved in the form that its evidence has.
  package func isApproval(of image: ImageDigest?) -> Bool { image.map(digests.contains) ?? false }

  /// Reads the member `"<64 hex digits>": {"subject": …, "version": [1, 2, 3], "proof_key": "<16 hex digits>", "tree_digest": "<64 hex
  /// digits>"}` of a policy's `images`. Without `proof_key`, the image has the default key; without `tree_digest`, evidence with tree
  /// digests does not count.
  ///
  /// - Throws: The first mistake in the member.
  init(_ name: String, _ image: JSONMember) throws(JSONMistake) {
    guard let digest: Digest = fixedBytes(hexadecimal: name) else { throw image.mistake(.hexadecimal(digitCount: 64)) }
    try image.checkMembers(["subject", "version", "proof_key", "tree_digest"])
    let subject: BoundedText<64> = try image.required("subject").boundedText()
    var numbers: [UInt64] = []
    for number in try image.required("version").elements(count: 3) { numbers.append(try number.integer()) }
    var proofKey: KeyID?
    if let member = image.member("proof_key") {
      guard let id: KeyID = fixedBytes(hexadecimal: try member.text(byteCounts: 16...16)) else {
        throw member.mistake(.hexadecimal(digitCount: 16))
      }
      proofKey = id
    }
    var tree: Digest?
    if let member = image.member("tree_digest") {
      guard let digest: Digest = fixedBytes(hexadecimal: try member.text(byteCounts: 64...64)) else {
        throw member.mistake(.hexadecimal(digitCount: 64))
      }
      tree = digest
    }
    self.init(
      digest: digest, tree: tree, subject: subject,
      version: AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2]),
      proofKey: proofKey)
  }

  /// The image as a member of `images`.
  var member: (String, JSONValue) {
    (
      hexadecimal(digest),
      .object(
        [
          ("subject", .string(subject.description)),
          ("version", .array([version.major, version.minor, version.patch].map { .integer($0) })),
        ] + (proofKey.map { [("proof_key", .string(hexadecimal($0)))] } ?? [])
          + (tree.map { [("tree_digest", .string(hexadecimal($0)))] } ?? []))
    )
  }
}

extension ApprovedImage {
  /// The name of every app that runs with the development key. No image is approved under it.
  package static let developmentSubject = BoundedText<64>("development" as StaticString)

  /// The approval of any executable that runs with the development key.
  package static func development(_ image: ImageDigest, release: KeyID) -> ApprovedImage {
    ApprovedImage(image, developmentSubject, .zero, release)
  }
}

extension ServicePolicy {
  /// Approves an image, or gives an approved image another name and version.
  ///
  /// - Returns: The approval that this one replaces; nil if there was none.
  @discardableResult
  package mutating func approve(_ image: ApprovedImage) -> ApprovedImage? {
    guard let index = images.firstIndex(where: { $0.digest == image.digest }) else {
      images.append(image)
      return nil
    }
    defer { images[index] = image }
    return images[index]
  }

  /// Withdraws an approval.
  ///
  /// - Returns: The approval; nil if there was none.
  @discardableResult
  package mutating func unapprove(_ digest: Digest) -> ApprovedImage? {
    images.firstIndex { $0.digest == digest }.map { images.remove(at: $0) }
  }
}

/// The registry of the keys of all approved releases: the file `release.keys`.
///
/// Each release has 48 bytes: its measurement proof key (16) and its evidence key (32). The root from which both are
/// derived is not stored, because the service does not need it.
package struct ReleaseKeyRegistry: ~Copyable, Sendable {
  /// The length of a release's entry, in bytes.
  package static let releaseByteCount = 48
  /// The largest number of registered releases.
  package static let maximumCount = 256

  private let keys: SecretBytes
  /// The ids of the measurement proof keys, in the order of the file.
  package let ids: [KeyID]

  /// Reads the releases of a file.
  ///
  /// - Parameter keys: The content of the file, 48 bytes for each release.
  /// - Returns: Nil unless there are 1 to 256 complete entries.
  /// - Throws: An error if the cryptographic library fails.
  package init?(
    _ keys: consuming SecretBytes, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) {
    let count = keys.count / Self.releaseByteCount
    guard (1...Self.maximumCount).contains(count), keys.count % Self.releaseByteCount == 0 else { return nil }
    var ids: [KeyID] = []
    for index in 0..<count {
      guard let key: MeasurementProofKey = part(of: keys.bytes, index, at: 0) else { return nil }
      ids.append(try measurementProofKeyID(key, using: &cryptography))
    }
    self.keys = keys
    self.ids = ids
  }

  /// Returns a copy of the measurement proof key with an id, 16 bytes; nil if there is none.
  package borrowing func proofKey(_ id: KeyID) -> MeasurementProofKey? {
    guard let index = ids.firstIndex(of: id) else { return nil }
    return part(of: keys.bytes, index, at: 0)
  }

  /// Returns a copy of the evidence key of the release whose measurement proof key has an id, 32 bytes; nil if there is
  /// none.
  package borrowing func evidenceKey(_ id: KeyID) -> EvidenceKey? {
    guard let index = ids.firstIndex(of: id) else { return nil }
    return part(of: keys.bytes, index, at: 16)
  }

  /// Returns a copy of the keys of the release whose measurement proof key has an id; nil if there is none.
  borrowing func keys(_ id: KeyID) throws(CryptographyFailure) -> ReleaseKeys? {
    guard let proof = proofKey(id), let evidence = evidenceKey(id) else { return nil }
    return try ReleaseKeys(proof: proof, evidence: evidence)
  }

  /// Returns whether the release with the id has this evidence key; false if there is no such release. Timing: the keys
  /// are compared in constant time.
  borrowing func has(_ id: KeyID, _ key: borrowing EvidenceKey) -> Bool {
    guard let known = evidenceKey(id) else { return false }
    return known.withBytes { left in key.withBytes { right in constantTimeEqual(left, right) } }
  }
}

/// Copies `count` bytes of a release, beginning at `offset`.
private func part<let count: Int>(of keys: Span<UInt8>, _ index: Int, at offset: Int) -> Secret<count>? {
  let start = index * ReleaseKeyRegistry.releaseByteCount + offset
  return Secret<count>(copying: keys.extracting(start..<start + count))
}
