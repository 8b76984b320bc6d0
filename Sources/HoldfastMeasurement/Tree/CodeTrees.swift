import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The executable file and all code in memory, of which the bytes are hashed as trees.
///
/// `app.image` is the root of the file's tree. `app.text` is SHA-256 of `"holdfast/1 text" ‖ 0x00`, and of each executable segment's
/// file offset, length and root, in the order of ``ExecutableText``. What fs-verity represents is as it is without trees: no bytes are
/// hashed.
struct CodeTrees {
  /// The sources of the trees: the executable file, and then segments.
  private(set) var sources: [TreeSource] = []

  private var hasImage = false
  /// The executable file's fs-verity digest; nil if its bytes are hashed.
  private var imageVerity: [UInt8]?
  private var segments: [(segment: ExecutableSegment, verity: [UInt8]?)]?

  /// Opens what is hashed.
  ///
  /// - Parameters:
  ///   - hasImage: whether the executable file is measured.
  ///   - code: the code in memory; nil if it is not measured.
  init(image hasImage: Bool, code: LiveCode?, _ files: HostFiles, chunk: inout [UInt8]) throws(MeasurementError) {
    self.hasImage = hasImage
    if hasImage { try openImage(files) }
    if let code { try open(code, files, &chunk) }
  }

  private mutating func openImage(_ files: HostFiles) throws(MeasurementError) {
    let file = try files.open(ExecutableImage.path, as: .executable)
    do throws(SystemError) { imageVerity = try FileVerity.bytes(of: file) } catch {
      throw .unreadable(.executable, code: error.number)
    }
    if imageVerity == nil { sources.append(try TreeSource(file: file, as: .executable)) }
  }

  private mutating func open(_ code: LiveCode, _ files: HostFiles, _ chunk: inout [UInt8]) throws(MeasurementError) {
    let memory = OpenFile(try files.open("/proc/self/mem", as: .memory))
    let pages = try PageMap(files)
    var segments: [(ExecutableSegment, [UInt8]?)] = []
    for segment in code.segments {
      let verity = try ExecutableText.verity(of: segment, in: code, pages, chunk: &chunk)
      segments.append((segment, verity))
      if verity == nil { sources.append(TreeSource(memory: memory, segment.addresses)) }
    }
    self.segments = segments
  }

  /// Returns the digest of the executable file, from the outcomes of ``sources``; nil if it is not measured.
  func image(_ outcomes: [TreeHashing.Outcome]) throws(MeasurementError) -> TimedDigest? {
    guard hasImage else { return nil }
    if let imageVerity {
      return try TimedDigest { (hash: inout SHA256Stream) throws(MeasurementError) in
        hash.append(imageVerity.span)
        return true
      }
    }
    return TimedDigest(outcomes[0].root, nanoseconds: outcomes[0].nanoseconds)
  }

  /// Returns the digest of the code in memory, from the outcomes of ``sources``, and the use of fs-verity; nil if it is not measured.
  func text(
    _ outcomes: [TreeHashing.Outcome]
  ) throws(MeasurementError) -> (digest: TimedDigest, segmentCount: Int, verifiedSegmentCount: Int)? {
    guard let segments else { return nil }
    let trees = outcomes.dropFirst(hasImage && imageVerity == nil ? 1 : 0)
    var roots = trees.map(\.root)[...]
    let digest = try TimedDigest { (hash: inout SHA256Stream) throws(MeasurementError) in
      hash.append(domain: "holdfast/1 text")
      for (segment, verity) in segments {
        ExecutableText.append(segment, verity, to: &hash)
        if verity == nil { hash.append(roots.removeFirst().bytes) }
      }
      return false
    }
    return (
      TimedDigest(digest.digest, nanoseconds: digest.nanoseconds + trees.reduce(0) { $0 + $1.nanoseconds }),
      segments.count, segments.count { $0.verity != nil }
    )
  }
}
