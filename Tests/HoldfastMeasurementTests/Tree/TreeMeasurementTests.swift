import Foundation
import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastMeasurement

@Suite struct TreeMeasurementTests {
  let host: HostFolder

  init() throws { host = try HostFolder() }

  private func digests(_ policy: MeasurementPolicy) throws -> [String: Digest] {
    var measurer = Measurer(keys: .default, files: host.files)
    let measurement = try measurer.measure(under: policy)
    #expect(measurement.hasTreeDigests == policy.contains(.treeDigests))
    let components = measurement.app + measurement.device
    return Dictionary(uniqueKeysWithValues: components.map { ($0.id.description, $0.digest) })
  }

  @Test func `only the executable and the code in memory have another form`() throws {
    let (flat, trees) = (try digests([]), try digests(.treeDigests))
    #expect(flat.keys == trees.keys)
    #expect(flat.keys.filter { flat[$0] != trees[$0] }.sorted() == ["app.image", "app.text"])
  }

  @Test(arguments: [0, 1, 131_071, 131_072, 131_073, 600_000])
  func `the executable has the tree digest of its bytes`(count: Int) throws {
    let text = String(repeating: "abcdefg", count: count / 7 + 1).prefix(count)
    try host.write("/usr/bin/program", String(text))
    #expect(try digests(.treeDigests)["app.image"] == treeDigest(Array(text.utf8)))
    #expect(try digests([])["app.image"] == sha256(Array(text.utf8)))
  }

  @Test func `code in memory has the root of each segment, with its place in its file`() throws {
    var bytes = Array("holdfast/1 text\0".utf8)
    for (offset, range) in [(0x10, 0x2000..<0x4000), (0x20, 0x8000..<0x9000)] {
      bytes += [0, 0, 0, 0, 0, 0, UInt8(offset), 0, 0, 0, 0, 0, 0, 0, UInt8(range.count >> 8), 0]
      let root = try treeDigest(Array(host.memory[range]))
      bytes += (0..<32).map { root[$0] }
    }
    #expect(try digests(.treeDigests)["app.text"] == sha256(bytes))
  }

  @Test func `a file with fs-verity is represented by its digest, as it is without trees`() throws {
    let verity = Array("sha256\0".utf8) + [UInt8](repeating: 9, count: 32)
    host.code = [host.program: HostFolder.file(inode: 11, verity: verity)]
    var bytes = Array("holdfast/1 text\0".utf8) + [UInt8](repeating: 0xff, count: 8) + verity
    bytes += [0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0]
    bytes += [0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x10, 0]
    let root = try treeDigest(Array(host.memory[0x8000..<0x9000]))
    bytes += (0..<32).map { root[$0] }
    #expect(try digests(.treeDigests)["app.text"] == sha256(bytes))
    var measurer = Measurer(keys: .default, files: host.files)
    let use = try measurer.measure(under: .treeDigests).verity
    #expect((use.segmentCount, use.allSegmentCount, use.hasImage) == (1, 2, false))
  }

  @Test func `a byte of code that differs in memory shows, and memory that ends too early is an error`() throws {
    let before = try digests(.treeDigests)["app.text"]
    var memory = host.memory
    memory[0x8fff] = 0x2e
    try host.write("/proc/self/mem", String(decoding: memory, as: UTF8.self))
    #expect(try digests(.treeDigests)["app.text"] != before)
    try host.write("/proc/self/mem", String(decoding: memory[..<0x8800], as: UTF8.self))
    #expect(throws: MeasurementError.unreadable(.memory, code: EIO)) { try digests(.treeDigests) }
  }

  @Test func `an executable that cannot be opened is an error`() throws {
    try host.remove("/usr/bin/program")
    #expect(throws: MeasurementError.unreadable(.executable, code: ENOENT)) { try digests(.treeDigests) }
  }

  @Test func `what a service approves of a file is what a process measures of it, in both forms`() throws {
    let program = try FileHandle(forReadingFrom: URL(filePath: Programs.probe)).readToEnd()!
    try FileManager.default.removeItem(atPath: host.program)
    try program.write(to: URL(filePath: host.program))
    let approved = try ExecutableImage.digests(of: host.program)
    #expect(try approved.flat == digests([])["app.image"] && approved.tree == digests(.treeDigests)["app.image"])
    #expect(
      try approved.flat == ExecutableImage.digest(of: host.program) && approved.tree == treeDigest(Array(program)))
  }

  @Test func `the configuration decides which form counts, and a recent measurement in the other is made again`() throws
  {
    var measurer = Measurer(keys: .default, files: host.files)
    var random = RepeatingRandom([1])
    let policies: [MeasurementPolicy] = [[], .treeDigests, .knownCode, [.treeDigests, .knownCode]]
    for policy in policies {
      let baseline = try measurer.takeBaseline(policy: policy, clock: TestClock(seconds: 1), random: &random)
      #expect(baseline.measurement.hasTreeDigests == policy.contains(.treeDigests))
      let fresh = try measurer.provableMeasurements(for: baseline.configuration)
      for other in policies {
        let measurement = try measurer.measure(under: other)
        let mine = try measurer.provableMeasurements(of: measurement, for: baseline.configuration)
        #expect(text(mine.integrity) == text(fresh.integrity) && text(mine.device) == text(fresh.device))
        #expect(
          try measurer.changedComponentCount(
            of: measurement, since: baseline.fingerprints, for: baseline.configuration) == 0)
        let again = try measurer.baseline(
          of: measurement, policy: policy, clock: TestClock(seconds: 1), random: &random)
        #expect(again.measurement.app == baseline.measurement.app)
      }
      let changes = try measurer.changes(since: baseline.fingerprints, for: baseline.configuration)
      #expect(changes.entries.allSatisfy { $0.state == .unchanged })
    }
  }

  @Test func `a process measures itself in the form of its baseline, and an attack shows`() throws {
    let folder = NSTemporaryDirectory() + "hf-" + UUID().uuidString.prefix(8)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    for policy in ["0", "2", "3"] {
      var environment = ProbeFolder.storage(folder)
      environment["HOLDFAST_PROBE_POLICY"] = policy
      let configuration = folder + "/config" + policy
      let baseline = try ProbeFolder.parse(
        Programs.run(Programs.probe, ["baseline", configuration], environment: environment))
      for attack in [[], ["text-patch"], ["memory-file"], ["tracer"], ["restored-text"]] {
        let now = try ProbeFolder.parse(
          Programs.run(Programs.probe, ["measure", configuration] + attack, environment: environment))
        #expect((now.integrity == baseline.integrity) == (attack.isEmpty || attack == ["restored-text"]), "\(attack)")
        #expect(now.device == baseline.device)
      }
    }
  }

  @Test(.enabled(if: RootsProgram.isPossible))
  func `code is known in the form in which it was hashed`() throws {
    let program = try RootsProgram()
    defer { program.remove() }
    let trees = program.path + "/data/trees"
    let (status, output) = try Programs.run(
      "/usr/bin/env", RootsProgram.asUser + [program.probe, "baseline", trees],
      environment: program.environment.merging(["PATH": "/usr/bin:/bin", "HOLDFAST_PROBE_POLICY": "3"]) { $1 })
    try #require(status == 0, "\(output)")
    let flat = try program.start()
    let probe = try program.start(configuration: trees)
    try program.waitForAge()
    let hashed = try probe.measure()
    let known = try probe.measure()
    #expect(known.isKnown && known.digests == hashed.digests)
    #expect(known.digests[1] != flat.first.digests[1] && known.digests[3] != flat.first.digests[3])
    #expect(known.digests[0] == flat.first.digests[0])
    #expect(try !probe.measure("text-patch").isKnown)
  }

  private func text(_ secret: borrowing Secret<32>) -> String { secret.withBytes { hex($0) } }
}
