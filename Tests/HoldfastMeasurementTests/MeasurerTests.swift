import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastMeasurement

@Suite struct MeasurerTests {
  let host: HostFolder

  init() throws { host = try HostFolder() }

  @Test func `a baseline names every component of the platform, and its evidence opens`() throws {
    let baseline = try takeBaseline()
    #expect(
      baseline.configuration.appIDs.map { "\($0)" }
        == ["app.debug", "app.image", "app.injected", "app.text", "os.release"])
    #expect(
      baseline.configuration.deviceIDs.map { "\($0)" } == ["device.cpu", "device.machine", "device.secret"])
    #expect(baseline.configuration.created == 1_790_000_000)
    var cryptography = OpenSSLCryptography()
    let opened = try AuthenticEvidence(opening: baseline.evidence.span, using: &cryptography, findKey: findKey)
    #expect(opened.evidence.configuration == baseline.configuration)
    #expect(opened.evidence.subject == "com.example.lock")
    #expect(opened.evidence.app == baseline.measurement.app)
    #expect(opened.evidence.properties.isEmpty)
  }

  @Test func `the measurements that a service computes from evidence are the prover's`() throws {
    let baseline = try takeBaseline()
    var measurer = Measurer(keys: .default, files: host.files)
    let mine = try measurer.provableMeasurements(for: baseline.configuration)
    var cryptography = OpenSSLCryptography()
    let integrity = try baseline.configuration.integrityMeasurement(
      app: baseline.measurement.app, device: baseline.measurement.device, using: &cryptography)
    let device = try baseline.configuration.deviceMeasurement(
      device: baseline.measurement.device, using: &cryptography)
    #expect(text(mine.integrity) == text(integrity))
    #expect(text(mine.device) == text(device))
  }

  @Test(arguments: [
    ("ID=debian\nVERSION_ID=\"12\"\n", "debian", "12"), ("NAME=x\nVERSION_ID=1\nVERSION_ID='3.4 b'\n", nil, "3.4 b"),
    ("ID=\"a\\\"b\"\nVERSION_ID=\n", "a\"b", nil), ("ID=\"open\nVERSION_ID=a b\n", nil, nil),
    ("ID=\(String(repeating: "x", count: 65))\nMYVERSION_ID=1", nil, nil), ("", nil, nil),
    ("ID=\(String(repeating: "x", count: 64))", String(repeating: "x", count: 64), nil),
  ])
  func `evidence states the system as os-release has it`(release: String, id: String?, version: String?) throws {
    try host.write("/etc/os-release", release)
    let statements = try #require(try statements(of: takeBaseline()))
    #expect(statements.systemID?.description == id && statements.systemVersion?.description == version)
  }

  @Test func `the app's properties are in evidence, sorted and each once, and more than fit are refused`() throws {
    var measurer = Measurer(keys: .default, files: host.files)
    var random = RepeatingRandom([1])
    let baseline = try measurer.takeBaseline(
      properties: ["kiosk", "beta", "kiosk"], userProperty: "floor 3", clock: TestClock(seconds: 1), random: &random)
    let statements = try #require(try statements(of: baseline))
    #expect(statements.appProperties == ["beta", "kiosk"] && statements.userProperty == "floor 3")
    let many = (0..<17).map { BoundedText<128>("\($0)")! }
    for (properties, fault) in [(many, EncodingFault.tooLong), ([""], .unexpected)] {
      #expect(throws: MeasurementError.evidence(fault)) {
        try measurer.takeBaseline(properties: properties, clock: TestClock(seconds: 1), random: &random)
      }
    }
  }

  private func statements(of baseline: Baseline) throws -> EvidenceStatements? {
    var cryptography = OpenSSLCryptography()
    return try AuthenticEvidence(opening: baseline.evidence.span, using: &cryptography, findKey: findKey)
      .evidence.statements
  }

  @Test func `two baselines of the same system have different measurements`() throws {
    let first = try measurements(takeBaseline(salt: 1).configuration)
    let second = try measurements(takeBaseline(salt: 2).configuration)
    #expect(first.integrity != second.integrity)
    #expect(first.device != second.device)
  }

  @Test func `one measurement serves for several baselines, each with its own salt`() throws {
    var measurer = Measurer(keys: .default, files: host.files)
    var measured: [String] = []
    let measurement = try measurer.measure(makingDeviceSecret: true)
    for salt in [UInt8(1), 2] {
      let configuration = try takeBaseline(salt: salt).configuration
      let shared = try measurer.provableMeasurements(of: measurement, for: configuration)
      let own = try measurements(configuration)
      #expect(text(shared.integrity) == own.integrity && text(shared.device) == own.device)
      measured.append(own.integrity)
    }
    #expect(measured[0] != measured[1])
  }

  @Test func `a configuration of fewer components takes its own out of a measurement of all`() throws {
    let configuration = try configuration(app: ["app.image"], device: ["device.cpu", "device.secret"])
    _ = try takeBaseline()
    var measurer = Measurer(keys: .default, files: host.files)
    let shared = try measurer.provableMeasurements(of: measurer.measure(), for: configuration)
    let own = try measurements(configuration)
    #expect(text(shared.integrity) == own.integrity && text(shared.device) == own.device)
    let other = try self.configuration(app: ["app.other"], device: ["device.secret"])
    #expect(throws: MeasurementError.unknownComponent) {
      _ = try measurer.provableMeasurements(of: measurer.measure(), for: other)
    }
  }

  @Test func `every changed byte of the configuration changes both measurements, or is refused`() throws {
    let configuration = try takeBaseline().configuration
    let bytes = configuration.encoded()
    let before = try measurements(configuration)
    var measured = 0
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1
      guard let other = try? measurements(MeasurementConfiguration(decoding: changed.span)) else { continue }
      measured += 1
      #expect(other.integrity != before.integrity, "byte \(index)")
      #expect(other.device != before.device, "byte \(index)")
    }
    #expect(measured > 32)
  }

  @Test func `a changed app changes IM and not DM, a changed device both`() throws {
    let configuration = try takeBaseline().configuration
    let before = try measurements(configuration)
    try host.write("/usr/bin/program", "another program")
    let updated = try measurements(configuration)
    #expect(updated.integrity != before.integrity)
    #expect(updated.device == before.device)
    try host.write("/etc/machine-id", "another machine")
    let moved = try measurements(configuration)
    #expect(moved.integrity != updated.integrity)
    #expect(moved.device != before.device)
  }

  @Test func `DM is measured where the app cannot be`() throws {
    let configuration = try takeBaseline().configuration
    try host.remove("/usr/bin/program")
    try host.remove("/proc/self")
    var measurer = Measurer(keys: .default, files: host.files)
    #expect(throws: Never.self) { _ = try measurer.deviceMeasurement(for: configuration) }
    #expect(throws: MeasurementError.self) { _ = try measurer.integrityMeasurement(for: configuration) }
  }

  @Test(arguments: [
    ("/proc/self/maps", MeasurementError.unreadable(.memoryMap, code: 2)),
    ("/proc/self/mem", .unreadable(.memory, code: 2)), ("/proc/self/exe", .unreadable(.executable, code: 2)),
    ("/proc/self/environ", .unreadable(.environment, code: 2)), ("/proc/self/task", .unreadable(.threads, code: 2)),
    ("/proc/cpuinfo", .unreadable(.processor, code: 2)),
  ])
  func `nothing that cannot be read is skipped`(path: String, error: MeasurementError) throws {
    try host.remove(path)
    #expect(throws: error) { try host.measurement() }
  }

  @Test func `a release that is absent has the digest of absence`() throws {
    try host.remove("/etc/os-release")
    #expect(try host.digest("os.release") == absence())
  }

  @Test(arguments: [("app.unknown", "device.cpu"), ("app.text", "device.tpm"), ("device.cpu", "app.text")])
  func `components that this platform does not have, or not in that scope, are refused`(
    app: ComponentID, device: ComponentID
  ) throws {
    let configuration = try configuration(app: [app], device: [device])
    var measurer = Measurer(keys: .default, files: host.files)
    #expect(throws: MeasurementError.unknownComponent) { try measurer.measure(for: configuration) }
  }

  @Test func `only what a configuration names is measured`() throws {
    let configuration = try configuration(app: ["os.release"], device: ["device.cpu"])
    try host.remove("/proc/self")
    var measurer = Measurer(keys: .default, files: host.files)
    let measurement = try measurer.measure(for: configuration)
    #expect(measurement.app.map(\.id) == ["os.release"])
    #expect(measurement.device.map(\.id) == ["device.cpu"])
    #expect(measurement.durations.map(\.id) == ["os.release", "device.cpu"])
  }

  @Test func `what changed since the baseline is named`() throws {
    let baseline = try takeBaseline()
    try host.write("/etc/os-release", "ID=other\n")
    try host.addMapping("0000e000-0000f000 r-xp 00000000 00:00 0 ")
    var measurer = Measurer(keys: .default, files: host.files)
    let now = try measurer.fingerprints(of: host.measurement(), for: baseline.configuration)
    #expect(now.changedComponents(since: baseline.fingerprints) == ["app.injected", "os.release"])
  }

  @Test func `each component is compared by itself, and one that cannot be measured hides none of the others`() throws {
    let baseline = try takeBaseline()
    try host.write("/etc/os-release", "ID=other\n")
    try host.write("/etc/machine-id", "another machine")
    try host.write("/proc/self/environ", "LD_AUDIT=a\0")
    try host.remove("/usr/bin/program")
    var measurer = Measurer(keys: .default, files: host.files)
    let changes = try measurer.changes(since: baseline.fingerprints, for: baseline.configuration)
    let gone = ComponentState.unmeasured(.unreadable(.executable, code: 2))
    #expect(
      changes.entries == [
        .init(id: "app.debug", isOfDevice: false, state: .unchanged),
        .init(id: "app.image", isOfDevice: false, state: gone),
        .init(id: "app.injected", isOfDevice: false, state: .changed),
        .init(id: "app.text", isOfDevice: false, state: .unchanged),
        .init(id: "os.release", isOfDevice: false, state: .changed),
        .init(id: "device.cpu", isOfDevice: true, state: .unchanged),
        .init(id: "device.machine", isOfDevice: true, state: .changed),
        .init(id: "device.secret", isOfDevice: true, state: .unchanged),
      ])
    #expect(changes.findings == [.auditVariable])
  }

  @Test func `a baseline's fingerprint of another component does not do`() throws {
    let baseline = try takeBaseline()
    var measurer = Measurer(keys: .default, files: host.files)
    let none = try BaselineFingerprints(decoding: [0x80].span)
    let changes = try measurer.changes(since: none, for: baseline.configuration)
    #expect(changes.entries.allSatisfy { $0.state == .changed })
  }

  private func findKey(_ id: KeyID) -> EvidenceKey? {
    (try? ProofKeys.default.currentID()) == id ? ProofKeys.default.evidenceKey() : nil
  }

  private func takeBaseline(salt: UInt8 = 7) throws -> Baseline {
    var measurer = Measurer(keys: .default, files: host.files)
    var random = RepeatingRandom([salt])
    return try measurer.takeBaseline(
      subject: "com.example.lock", version: AppVersion(major: 1, minor: 0, patch: 0),
      clock: TestClock(seconds: 1_790_000_000),
      random: &random)
  }

  private func configuration(app: [ComponentID], device: [ComponentID]) throws -> MeasurementConfiguration {
    try MeasurementConfiguration(
      salt: TypedBytes(), mpkID: ProofKeys.default.currentID(), appIDs: app, deviceIDs: device, created: 0)
  }

  private func measurements(
    _ configuration: MeasurementConfiguration
  ) throws -> (integrity: String, device: String) {
    var measurer = Measurer(keys: .default, files: host.files)
    let measurements = try measurer.provableMeasurements(for: configuration)
    return (text(measurements.integrity), text(measurements.device))
  }

  private func text(_ secret: borrowing Secret<32>) -> String { secret.withBytes { hex($0) } }
}
