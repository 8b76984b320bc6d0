import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// One measurement in progress.
struct MeasurementPass {
  private let files: HostFiles
  private let makingDeviceSecret: Bool
  private let policy: MeasurementPolicy
  private var measurement = LiveMeasurement()
  private var digests: [PlatformComponent: Digest] = [:]
  private var code: LiveCode?

  init(files: HostFiles, makingDeviceSecret: Bool = false, policy: MeasurementPolicy = []) {
    self.files = files
    self.makingDeviceSecret = makingDeviceSecret
    self.policy = policy
  }

  /// Measures these components. A separate thread hashes the executable file at the same time, unless the digests of all code are
  /// known.
  ///
  /// The state of the code is examined before and after: before, for known digests; after, because they, or those that are hashed now,
  /// count only if the state was the same all the time.
  mutating func measure(
    _ app: [PlatformComponent], _ device: [PlatformComponent], chunk: inout [UInt8]
  ) throws(MeasurementError) -> LiveMeasurement {
    let start = monotonicNanoseconds()
    let before = permitsKnownCode(app) ? try examine(chunk: &chunk) : nil
    let known = before.flatMap { knownCode.digests(for: $0) }
    let examination = monotonicNanoseconds() - start
    let hashed = known == nil ? app : app.filter { $0 != .appImage && $0 != .appText }
    try hash(hashed, device, chunk: &chunk)
    if let before { try examineAgain(before, known, examination, chunk: &chunk) }
    measurement.hasTreeDigests = usesTrees
    measurement.app = components(app)
    measurement.device = components(device)
    return measurement
  }

  private mutating func hash(
    _ app: [PlatformComponent], _ device: [PlatformComponent], chunk: inout [UInt8]
  ) throws(MeasurementError) {
    if usesTrees { return try hashTrees(app, device, chunk: &chunk) }
    let image = app.contains(.appImage) ? imageDigest() : nil
    for component in app + device where component != .appImage { try measure(component, chunk: &chunk) }
    guard let image else { return }
    let digest = try image.wait().get()
    measurement.verity.hasImage = digest.hasVerity
    record(.appImage, digest)
  }

  /// Hashes code as trees, on all processors. This thread measures the other components meanwhile.
  private mutating func hashTrees(
    _ app: [PlatformComponent], _ device: [PlatformComponent], chunk: inout [UInt8]
  ) throws(MeasurementError) {
    let trees = try CodeTrees(
      image: app.contains(.appImage), code: app.contains(.appText) ? liveCode() : nil, files, chunk: &chunk)
    let hashing = TreeHashing(trees.sources)
    for component in app + device where component != .appImage && component != .appText {
      try measure(component, chunk: &chunk)
    }
    let outcomes = try hashing.finish()
    if let image = try trees.image(outcomes) {
      measurement.verity.hasImage = image.hasVerity
      record(.appImage, image)
    }
    if let text = try trees.text(outcomes) {
      measurement.verity.segmentCount = text.verifiedSegmentCount
      measurement.verity.allSegmentCount = text.segmentCount
      record(.appText, text.digest)
    }
  }

  private var usesTrees: Bool { policy.contains(.treeDigests) }

  private var knownCode: KnownCode { usesTrees ? .treesOfThisProcess : .ofThisProcess }

  private func permitsKnownCode(_ app: [PlatformComponent]) -> Bool {
    policy.contains(.knownCode) && app.contains(.appImage) && app.contains(.appText)
  }

  /// Looks at the code, and returns its state if all of it is unchanging.
  private mutating func examine(chunk: inout [UInt8]) throws(MeasurementError) -> UnchangingCode? {
    let fresh = try LiveCode(files, withState: true)
    code = fresh
    return UnchangingCode(fresh, files, chunk: &chunk)
  }

  /// Records known digests, or remembers those that were hashed, if the state of the code is still the same. Otherwise nothing is
  /// remembered, and all code is hashed.
  private mutating func examineAgain(
    _ before: UnchangingCode, _ known: KnownCode.Digests?, _ examination: UInt64, chunk: inout [UInt8]
  ) throws(MeasurementError) {
    let start = monotonicNanoseconds()
    let isUnchanged = try examine(chunk: &chunk) == before
    switch (known, isUnchanged) {
    case (let known?, true):
      record(.appText, TimedDigest(known: known.text, nanoseconds: examination + monotonicNanoseconds() - start))
      record(.appImage, TimedDigest(known: known.image, nanoseconds: 0))
      measurement.isCodeKnown = true
    case (_?, false):
      knownCode.forget()
      try hash([.appImage, .appText], [], chunk: &chunk)
    case (nil, true):
      guard let image = digests[.appImage], let text = digests[.appText] else { return }
      knownCode.remember(.init(image: image, text: text), for: before)
    case (nil, false): knownCode.forget()
    }
  }

  private func components(_ list: [PlatformComponent]) -> [Component] {
    list.compactMap { component in digests[component].map { Component(id: component.id, digest: $0) } }
  }

  private mutating func measure(_ component: PlatformComponent, chunk: inout [UInt8]) throws(MeasurementError) {
    let digest = try TimedDigest { (hash: inout SHA256Stream) throws(MeasurementError) in
      try self.append(component, to: &hash, chunk: &chunk)
      return false
    }
    record(component, digest)
  }

  private mutating func record(_ component: PlatformComponent, _ result: TimedDigest) {
    digests[component] = result.digest
    measurement.durations.append(.init(id: component.id, nanoseconds: result.nanoseconds))
  }

  private func imageDigest() -> BackgroundDigest {
    let files = files
    return BackgroundDigest {
      Result { () throws(MeasurementError) in
        try TimedDigest { (hash: inout SHA256Stream) throws(MeasurementError) in
          var chunk = [UInt8](repeating: 0, count: Measurer.chunkByteCount)
          return try ExecutableImage.measure(files, into: &hash, chunk: &chunk)
        }
      }
    }
  }

  private mutating func append<Hash: StreamingDigest>(
    _ component: PlatformComponent, to hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) {
    switch component {
    case .appImage: _ = try ExecutableImage.measure(files, into: &hash, chunk: &chunk)
    case .appText: try appendText(to: &hash, chunk: &chunk)
    case .appInjected: try appendInjection(to: &hash)
    case .appDebug: try appendDebug(to: &hash)
    case .hostPosture: appendPosture(to: &hash)
    case .osRelease: try appendRelease(to: &hash)
    case .deviceCPU: try appendProcessor(to: &hash)
    case .deviceMachine: try appendMachine(to: &hash)
    case .deviceSecret: try appendDeviceSecret(to: &hash)
    }
  }

  private mutating func appendText<Hash: StreamingDigest>(
    to hash: inout Hash, chunk: inout [UInt8]
  ) throws(MeasurementError) {
    let text = try ExecutableText(measuring: liveCode(), files, into: &hash, chunk: &chunk)
    measurement.verity.segmentCount = text.verifiedSegmentCount
    measurement.verity.allSegmentCount = text.segmentCount
  }

  private mutating func appendInjection<Hash: StreamingDigest>(to hash: inout Hash) throws(MeasurementError) {
    let findings = try Findings(injectionIn: liveCode(), files: files)
    if !findings.isEmpty { measurement.note("injection") }
    append(findings, to: &hash)
  }

  private mutating func appendDebug<Hash: StreamingDigest>(to hash: inout Hash) throws(MeasurementError) {
    let findings = try Findings(watchersIn: liveCode().map, files: files)
    if !findings.kinds.isDisjoint(with: [.agentThread, .agentMapping, .agentListener]) { measurement.note("agent") }
    if !findings.kinds.isDisjoint(with: [.tracer, .dumpable]) { measurement.note("debugger") }
    append(findings, to: &hash)
  }

  private mutating func append<Hash: StreamingDigest>(_ findings: Findings, to hash: inout Hash) {
    measurement.findings.formUnion(findings.kinds)
    let encoded = findings.encoded
    hash.append(encoded.span)
  }

  private func appendPosture<Hash: StreamingDigest>(to hash: inout Hash) {
    let posture = Posture(reading: files).encodedStablePart
    hash.append(posture.span)
  }

  private mutating func appendRelease<Hash: StreamingDigest>(to hash: inout Hash) throws(MeasurementError) {
    let release = try files.contentsIfPresent(of: "/etc/os-release", as: .operatingSystem) ?? []
    hash.append(release.span)
    measurement.systemID = SystemRelease.value(of: "ID=", in: release)
    measurement.systemVersion = SystemRelease.value(of: "VERSION_ID=", in: release)
  }

  private func appendProcessor<Hash: StreamingDigest>(to hash: inout Hash) throws(MeasurementError) {
    let model = try ProcessorModel(files).encoded
    hash.append(model.span)
  }

  private mutating func appendMachine<Hash: StreamingDigest>(to hash: inout Hash) throws(MeasurementError) {
    let identity = try MachineIdentity(files)
    measurement.restsOnDeviceSecretAlone = identity.isAbsent
    let encoded = identity.encoded
    hash.append(encoded.span)
  }

  private func appendDeviceSecret<Hash: StreamingDigest>(to hash: inout Hash) throws(MeasurementError) {
    let secret = try deviceSecret()
    secret.withBytes { hash.append($0) }
  }

  private func deviceSecret() throws(MeasurementError) -> Secret<32> {
    do throws(HostSecretFault) {
      let store = try HostSecret(files)
      if makingDeviceSecret { return try store.readOrCreate() }
      return try store.read()
    } catch {
      throw .deviceSecret(error)
    }
  }

  private mutating func liveCode() throws(MeasurementError) -> LiveCode {
    if let code { return code }
    let fresh = try LiveCode(files)
    code = fresh
    return fresh
  }
}
