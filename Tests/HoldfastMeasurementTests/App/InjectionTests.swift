import HoldfastCore
import Testing

import HoldfastMeasurement

@Suite struct InjectionTests {
  let host: HostFolder

  init() throws { host = try HostFolder() }

  @Test func `a clean process has the digest of absence and no property`() throws {
    #expect(try host.digest("app.injected") == absence())
    #expect(try host.measurement().properties.isEmpty)
  }

  @Test(arguments: [
    "0000e000-0000f000 r-xp 00000000 00:00 0 ", "0000e000-0000f000 rwxp 00000000 00:00 0 [stack]",
    "0000e000-0000f000 r-xp 00000000 00:00 0 [heap]", "0000e000-0000f000 r-xp 00000000 00:00 0 [anon:jit]",
    "0000e000-0000f000 r-xp 00000000 00:01 7 /memfd:payload (deleted)",
    "0000e000-0000f000 r-xp 00000000 fe:00 33 /tmp/unknown.so",
    "0000e000-0000f000 --xp 00000000 00:00 0 [uprobes]",
  ])
  func `code that the loader did not bring shows`(line: String) throws {
    try host.addMapping(line)
    #expect(try isInjected())
  }

  @Test func `memory of a file that is writable and executable shows`() throws {
    try host.write("/proc/self/maps", host.cleanMap.replacing("00002000-00004000 r-xp", with: "00002000-00004000 rwxp"))
    #expect(try isInjected())
  }

  @Test func `code that only the loader knows of shows`() throws {
    host.loaded.append(0xe000..<0xf000)
    #expect(try isInjected())
  }

  @Test func `the kernel's own code may be in the loader's list`() throws {
    host.loaded.append(0xc000..<0xd000)
    #expect(try !isInjected())
  }

  @Test func `code of the loader's that the kernel maps only in part shows`() throws {
    host.loaded[1] = 0x8000..<0xa000
    #expect(try isInjected())
  }

  @Test(arguments: ["LD_PRELOAD=/tmp/x.so", "LD_AUDIT=libaudit.so"])
  func `a preload in the environment that the process started with shows`(variable: String) throws {
    try host.write("/proc/self/environ", "HOME=/root\0\(variable)\0LANG=C\0")
    #expect(try isInjected())
  }

  @Test(arguments: ["LD_PRELOAD=", "LD_PRELOADED=1", "X=LD_PRELOAD=1", "LD_LIBRARY_PATH=/opt", "LD_PRELOAD"])
  func `an empty preload and other variables do not`(variable: String) throws {
    try host.write("/proc/self/environ", "HOME=/root\0\(variable)\0LANG=C\0")
    #expect(try !isInjected())
  }

  @Test func `the system's preload file shows when it says anything`() throws {
    try host.write("/etc/ld.so.preload", " \n")
    #expect(try !isInjected())
    try host.write("/etc/ld.so.preload", "/tmp/x.so\n")
    #expect(try isInjected())
  }

  @Test func `different findings have different digests`() throws {
    try host.addMapping("0000e000-0000f000 r-xp 00000000 00:00 0 ")
    let one = try host.digest("app.injected")
    try host.addMapping("0000e000-0000f000 r-xp 00000000 00:00 0 [heap]")
    let other = try host.digest("app.injected")
    try host.write("/proc/self/environ", "LD_PRELOAD=a\0")
    #expect(try Set([one, other, host.digest("app.injected")]).count == 3)
  }

  @Test(arguments: [("/usr/bin/program", 11), ("/usr/lib/libone.so.1", 22)])
  func `code whose file is gone, deleted or replaced shows, the executable's too`(path: String, inode: Int) throws {
    let path = path.hasSuffix("program") ? host.program : path
    #expect(try !isInjected())
    try host.write("/proc/self/maps", host.cleanMap.replacing(path, with: path + " (deleted)"))
    #expect(try isInjected())
    try host.write("/proc/self/maps", host.cleanMap)
    host.code[path] = HostFolder.file(inode: UInt64(inode) + 1)
    #expect(try isInjected())
    #expect(try host.measurement().findings == [.replacedFile])
    host.code[path] = HostFolder.file(inode: UInt64(inode))
    #expect(try !isInjected())
    host.withoutFiles = true
    #expect(try isInjected())
  }

  @Test func `another device of the file's than the map says does not, as on Btrfs and OverlayFS`() throws {
    host.code[HostFolder.library] = MappedFile(
      identity: FileIdentity(deviceMajor: 0, deviceMinor: 45, inode: 22))
    #expect(try !isInjected())
  }

  @Test func `one replaced library is not another`() throws {
    host.code[HostFolder.library] = HostFolder.file(inode: 1)
    let library = try host.digest("app.injected")
    host.code = [host.program: HostFolder.file(inode: 1)]
    #expect(try host.digest("app.injected") != library)
  }

  @Test func `a program that is not the executable shows: the loader was started with it`() throws {
    host.loaded.swapAt(0, 1)
    #expect(try isInjected())
    #expect(try host.measurement().findings == [.startedByLoader])
  }

  @Test func `a page of the kernel's code that was written to shows, and no other page does`() throws {
    try host.writePages(dirty: Set(0..<16).subtracting([12]))
    #expect(try !isInjected())
    try host.writePages(dirty: [12])
    #expect(try isInjected())
    #expect(try host.measurement().findings == [.patchedKernelCode])
    try host.remove("/proc/self/pagemap")
    #expect(throws: MeasurementError.unreadable(.pageMap, code: 2)) { try host.measurement() }
  }

  @Test func `a loader that names nothing shows`() throws {
    host.loaded = []
    #expect(try host.measurement().findings == [.startedByLoader, .unknownToLoader])
  }

  @Test func `every finding has a name of its own`() {
    #expect(Set(Finding.allCases.map { "\($0.name)" }).count == Finding.allCases.count)
  }

  private func isInjected() throws -> Bool {
    let hasProperty = try host.measurement().properties.contains("injection")
    let isAbsent = try host.digest("app.injected") == absence()
    #expect(hasProperty != isAbsent)
    return hasProperty
  }
}
