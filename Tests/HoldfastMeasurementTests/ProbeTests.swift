import Foundation
import HoldfastCore
import Testing

import HoldfastMeasurement

/// A real process, started again and again, disturbed in every way, and measured by itself.
@Suite final class ProbeTests {
  let probe: ProbeFolder
  var folder: String { probe.path }
  var baseline: ProbeFolder.Measured { probe.baseline }

  init() throws { probe = try ProbeFolder() }

  @Test func `restarts, other addresses, folders, languages and variables do not show`() throws {
    for _ in 0..<5 { #expect(try probe.measure() == baseline) }
    #expect(try probe.measure(in: "/usr") == baseline)
    let noise = [
      "LANG": "de_DE.UTF-8", "LC_ALL": "C", "TZ": "Asia/Tokyo", "MALLOC_ARENA_MAX": "1", "NO_COLOR": "1",
      "PADDING": String(repeating: "x", count: 20_000),
    ]
    #expect(try probe.measure(environment: noise) == baseline)
  }

  @Test func `a program that was moved and renamed is the same program`() throws {
    let copy = folder + "/another-name"
    try FileManager.default.copyItem(atPath: Programs.probe, toPath: copy)
    #expect(try probe.measure(program: copy) == baseline)
  }

  @Test func `one changed bit of the program changes IM and not DM`() throws {
    let copy = folder + "/patched"
    var program = try Data(contentsOf: URL(filePath: Programs.probe))
    let position = try #require(program.firstRange(of: Data("MeasurementProbe".utf8))).lowerBound
    program[position] ^= 1
    try program.write(to: URL(filePath: copy))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: copy)
    probe.expectChangedApp(try probe.measure(program: copy))
  }

  @Test(arguments: [
    "tracer", "thread-tracer", "anonymous-code", "mapped-file", "text-patch", "memory-file", "agent-thread",
  ])
  func `an attack on the process changes IM and not DM`(disturbance: String) throws {
    probe.expectChangedApp(try probe.measure(disturbance))
  }

  @Test(arguments: ["restored-text", "execute-only", "plain-thread"])
  func `what leaves the code as it was does not show`(disturbance: String) throws {
    #expect(try probe.measure(disturbance) == baseline)
  }

  @Test(arguments: ["LD_PRELOAD", "LD_AUDIT"])
  func `a preloaded library changes IM and not DM`(variable: String) throws {
    probe.expectChangedApp(try probe.measure(environment: [variable: "libc_malloc_debug.so.0"]))
  }

  @Test func `a preload that names no library shows as well`() throws {
    probe.expectChangedApp(try probe.measure(environment: ["LD_PRELOAD": "/no/such/library.so"]))
  }

  @Test(arguments: [
    ("tracer", ["changed app.debug", "property debugger"]), ("text-patch", ["changed app.text"]),
    ("memory-file", ["changed app.text"]), ("anonymous-code", ["changed app.injected", "property injection"]),
    ("mapped-file", ["changed app.injected", "changed app.text", "property injection"]),
    ("agent-thread", ["changed app.debug", "property agent"]), ("plain-thread", []),
  ])
  func `what changed is named`(disturbance: String, expected: [String]) throws {
    #expect(try probe.changes(disturbance) == expected)
  }

  @Test func `another device secret changes both`() throws {
    let secret = URL(filePath: folder + "/data/holdfast/device.secret")
    var bytes = try Data(contentsOf: secret)
    bytes[0] ^= 1
    try bytes.write(to: secret)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret.path)
    let other = try probe.measure()
    #expect(other.integrity != baseline.integrity)
    #expect(other.device != baseline.device)
  }

  @Test func `the app's storage follows HOME where XDG_DATA_HOME is not an absolute path`() throws {
    let homes = [["HOME": folder + "/home"], ["HOME": folder + "/home", "XDG_DATA_HOME": "relative"]]
    for environment in homes {
      let (status, _) = try Programs.run(Programs.probe, ["baseline", folder + "/other"], environment: environment)
      #expect(status == 0)
    }
    #expect(FileManager.default.fileExists(atPath: folder + "/home/.local/share/holdfast/device.secret"))
    let (status, output) = try Programs.run(Programs.probe, ["baseline", folder + "/other"])
    #expect(status == 2)
    #expect(output == "error deviceSecret(HoldfastMeasurement.HostSecretFault.noLocation)\n")
  }

  @Test func `processes that make the device secret at once get the same`() async throws {
    let environment = ProbeFolder.storage(folder + "/fresh")
    try FileManager.default.createDirectory(atPath: folder + "/fresh", withIntermediateDirectories: true)
    try await withThrowingTaskGroup(of: Int32.self) { group in
      for index in 0..<4 {
        let config = folder + "/config-\(index)"
        group.addTask { try Programs.run(Programs.probe, ["baseline", config], environment: environment).status }
      }
      for try await status in group { #expect(status == 0) }
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder + "/fresh/data/holdfast")
    #expect(names == ["device.secret"])
  }

  @Test func `the prover of the README proves once it has its own baseline's configuration`() throws {
    try FileManager.default.copyItem(atPath: folder + "/config", toPath: folder + "/measurement_config.bin")
    let nonce = "000102030405060708090a0b0c0d0e0f"
    let runs = try (0..<2).map { _ in
      try Programs.run(Programs.readmeProver, [nonce], environment: ProbeFolder.storage(folder), in: folder)
    }
    #expect(runs[0].status == 0)
    #expect(runs[0].output.count == 65)
    #expect(runs[0].output == runs[1].output)
    let other = try Programs.run(
      Programs.readmeProver, [nonce.replacing("0f", with: "10")], environment: ProbeFolder.storage(folder), in: folder)
    #expect(other.output != runs[0].output)
    #expect(
      try Programs.run(Programs.readmeProver, ["00"], environment: ProbeFolder.storage(folder), in: folder).status != 0)
  }
}
