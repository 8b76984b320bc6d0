import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastLinux

/// The options for the name and version of an approved image, and for the keys of its releases.
struct ApprovalOptions: ParsableArguments {
  @Option(help: "The app's name, at most 64 bytes; by default holdfast, for this program's own image.")
  var subject: String?

  @Option(help: "The app's version, three numbers; by default 0.0.0, for this program's own image.")
  var version: String?

  @Option(
    help: """
      The key file that the image was built with, mpk.key of its package: 1 to 64 releases, the newest first. By default, this \
      program's own keys, and for an interpreter the default key.
      """,
    completion: .file())
  var proofKeys: String?

  func approval(of path: String, _ keys: borrowing ImageKeys) throws(Failure) -> ApprovedImage {
    let digests = try imageDigests(path)
    return ApprovedImage(
      digest: digests.flat, tree: digests.tree, subject: try appName(subject ?? "holdfast", of: "--subject"),
      version: try AppVersion(argument: version ?? "0.0.0", of: "--version"), proofKey: keys.current)
  }

  /// Returns the keys with which the image at `path` was built.
  func keys(of path: String) throws(Failure) -> ImageKeys {
    let interpreter = try interpreter(path)
    guard let proofKeys else { return try ImageKeys(interpreter == nil ? .app : .default) }
    if let interpreter {
      throw Failure(
        .malformed, "\(path) is an interpreter (\(interpreter)), so its evidence does not show which program it runs",
        hint: "leave out --proof-keys: interpreters can be approved only with the default key")
    }
    return try ImageKeys(ReleaseRoots(file: proofKeys))
  }

  /// Says so if the image at `path` contains an older version of Holdfast's library than this program.
  func noteLibrary(of path: String) throws(Failure) {
    let version: AppVersion?
    do throws(MeasurementError) { version = try LibraryVersion.find(inProgramAt: path) } catch {
      throw Failure(.malformed, "\(path) cannot be read as an image")
    }
    guard let version, version < LibraryVersion.own else { return }
    Console.note(
      "\(path) contains version \(version.text) of Holdfast's library; the newest that is known is \(LibraryVersion.own.text)"
    )
  }

  private func interpreter(_ path: String) throws(Failure) -> String? {
    do throws(MeasurementError) { return try ExecutableImage.interpreter(at: path) } catch {
      throw Failure(.malformed, "\(path) cannot be read as an image")
    }
  }
}

/// The keys of an image's releases, as the service registers them.
struct ImageKeys: ~Copyable {
  /// The keys of each release, 48 bytes: measurement proof key, evidence key.
  private(set) var bytes = ByteBuffer<12288>()
  /// The id of the current measurement proof key; nil for the default key.
  private(set) var current: KeyID?
  /// Whether the current key of any image is the default key.
  private var hasDefaultKey = false

  /// Creates an empty list.
  init() {}

  /// Returns the keys in a program.
  init(_ keys: ProofKeys) throws(Failure) {
    for index in 0..<keys.count { try append(keys.measurementProofKey(at: index), keys.evidenceKey(at: index)) }
    try setCurrent(keys.measurementProofKey())
  }

  /// Derives the keys from the roots in a key file.
  init(_ roots: borrowing ReleaseRoots) throws(Failure) {
    for index in 0..<roots.count {
      let keys: ReleaseKeys
      do throws(CryptographyFailure) { keys = try ReleaseKeys(of: roots.root(at: index)) } catch {
        throw Self.libraryFailure
      }
      try append(keys.proof, keys.evidence)
      if index == 0 { try setCurrent(keys.proof) }
    }
  }

  /// Adds the keys of another image that are not there yet.
  mutating func append(_ other: borrowing ImageKeys) throws(Failure) {
    let size = ReleaseKeyRegistry.releaseByteCount
    let added = other.bytes.bytes
    for start in stride(from: 0, to: added.count, by: size) {
      let entry = added.extracting(start..<start + size)
      if !contains(entry) { try append(entry) }
    }
    hasDefaultKey = hasDefaultKey || other.hasDefaultKey
  }

  /// Registers the keys with a service.
  func register(with folder: ServiceFolder) throws(ServiceFolderFault) {
    let keys = bytes.bytes
    for start in stride(from: 0, to: keys.count, by: ReleaseKeyRegistry.releaseByteCount) {
      guard let proofKey = MeasurementProofKey(copying: keys.extracting(start..<start + 16)),
        let evidenceKey = EvidenceKey(copying: keys.extracting(start + 16..<start + 48))
      else { throw .key(.releaseKeys) }
      try folder.register(proofKey, evidenceKey)
    }
  }

  /// Warns if an image has the default key.
  func warnIfDefault() {
    if hasDefaultKey { ProofKeys.default.warnIfDefault() }
  }

  private func contains(_ entry: Span<UInt8>) -> Bool {
    let known = bytes.bytes
    for start in stride(from: 0, to: known.count, by: entry.count)
    where constantTimeEqual(known.extracting(start..<start + entry.count), entry) { return true }
    return false
  }

  private static let libraryFailure = Failure(.fault, "the cryptographic library failed")

  private mutating func append(
    _ proofKey: borrowing MeasurementProofKey, _ evidenceKey: borrowing EvidenceKey
  ) throws(Failure) {
    try proofKey.withBytes { (key) throws(Failure) in try append(key) }
    try evidenceKey.withBytes { (key) throws(Failure) in try append(key) }
  }

  private mutating func append(_ key: Span<UInt8>) throws(Failure) {
    do throws(EncodingFault) { try bytes.append(key) } catch {
      throw Failure(.malformed, "there are more than \(ReleaseKeyRegistry.maximumCount) releases")
    }
  }

  private mutating func setCurrent(_ key: borrowing MeasurementProofKey) throws(Failure) {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let id = try measurementProofKeyID(key, using: &cryptography)
      let known = try measurementProofKeyID(ProofKeys.default.measurementProofKey(), using: &cryptography)
      hasDefaultKey = id == known
      current = hasDefaultKey ? nil : id
    } catch { throw Self.libraryFailure }
  }
}
