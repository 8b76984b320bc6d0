import Foundation
import Testing

/// A real process whose code is not what it was at the baseline: other libraries, another loader, replaced files.
@Suite final class ProbeCodeTests {
  let probe: ProbeFolder
  var folder: String { probe.path }

  init() throws { probe = try ProbeFolder() }

  private let preload = ["LD_PRELOAD": "libc_malloc_debug.so.0"]

  @Test(arguments: [
    ("dlopen", ["changed app.text"]), ("poke", ["changed app.text"]),
    ("kernel-code", ["changed app.injected", "property injection"]),
    ("delete-executable", ["changed app.injected", "property injection"]),
    ("replace-executable", ["changed app.injected", "property injection"]),
  ])
  func
    `a library opened, a word poked, a page of the kernel's written to, an executable replaced since the baseline is named`(
      disturbance: String, expected: [String]
    ) throws
  {
    let program = try copyOfProbe("probe")
    #expect(try probe.changes(disturbance, program: program) == expected)
    let another = try copyOfProbe("another")
    probe.expectChangedApp(try probe.measure(disturbance, program: another))
  }

  @Test func `a library that is replaced while it runs is named, though what runs is the same`() throws {
    let library = try copyOfLibrary()
    let environment = ["LD_LIBRARY_PATH": folder]
    #expect(try probe.changes(environment: environment) == [])
    let expected = ["changed app.injected", "property injection"]
    #expect(try probe.changes("replace,\(library)", environment: environment) == expected)
  }

  @Test func `another library by LD_LIBRARY_PATH shows, by one byte of code that nothing runs`() throws {
    let library = try copyOfLibrary()
    let environment = ["LD_LIBRARY_PATH": folder]
    let same = try probe.measure(environment: environment)
    var elf = try ElfFile(library)
    let end = try #require(elf.code?.upperBound)
    elf.data[end - 1] ^= 1
    try elf.write(to: library)
    let other = try probe.measure(environment: environment)
    #expect(other.integrity != same.integrity)
    #expect(other.device == same.device)
  }

  @Test func `a preloaded library that wipes its name out of the environment still shows as code`() throws {
    probe.expectChangedApp(try probe.measure("forget-preload", environment: preload))
    let wiped = try probe.run("explain", ["forget-preload"], environment: preload)
    #expect(wiped.output.split(separator: "\n").map(String.init) == ["changed app.text"], "\(wiped.output)")
  }

  @Test func `a program that names another interpreter is another, though it runs as well`() throws {
    var elf = try ElfFile(Programs.probe)
    let place = try #require(elf.interpreter)
    let loader = try #require(elf.interpreterPath)
    let name = "/tmp/hf\(UInt32.random(in: 0 ... .max))"
    defer { try? FileManager.default.removeItem(atPath: name) }
    try FileManager.default.copyItem(atPath: URL(filePath: loader).resolvingSymlinksInPath().path, toPath: name)
    let bytes = Data(name.utf8)
    try #require(bytes.count < place.count)
    elf.data.replaceSubrange(place, with: bytes + Data(count: place.count - bytes.count))
    try elf.write(to: folder + "/program")
    probe.expectChangedApp(try probe.measure(program: folder + "/program"))
    let changed = try probe.run("explain", [], program: folder + "/program").output
    #expect(changed.contains("changed app.image"), "\(changed)")
  }

  @Test(arguments: [[], ["--preload", "libc_malloc_debug.so.0"]])
  func `a program that is an argument of the loader is another, and the service is told`(options: [String]) throws {
    let loader = try #require(try ElfFile(Programs.probe).interpreterPath)
    let before = options + [Programs.probe]
    probe.expectChangedApp(try probe.measure(program: loader, before: before))
    let lines = try probe.run("explain", [], program: loader, before: before).output.split(separator: "\n")
    #expect(lines.contains("changed app.injected"))
    #expect(lines.contains("changed app.image"))
    #expect(lines.contains("property injection"))
  }

  private func copyOfProbe(_ name: String) throws -> String {
    let path = folder + "/" + name
    try FileManager.default.copyItem(atPath: Programs.probe, toPath: path)
    return path
  }

  /// A copy of libcrypto under its own name.
  private func copyOfLibrary() throws -> String {
    let path = folder + "/libcrypto.so.3"
    try FileManager.default.copyItem(atPath: Programs.loaded("libcrypto.so.3"), toPath: path)
    return path
  }
}
