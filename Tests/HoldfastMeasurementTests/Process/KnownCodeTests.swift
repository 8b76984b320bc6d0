import Foundation
import Testing

/// Attacks on code that a living prover knows to be unchanged. What only root can change is known; everything else is hashed.
@Suite(.serialized, .enabled(if: RootsProgram.isPossible)) struct KnownCodeTests {
  let program: RootsProgram

  init() throws { program = try RootsProgram() }

  @Test func `code of root's is known from the second measurement on, and has the digests that hashing gives`() throws {
    try program.waitForAge()
    let probe = try program.start()
    let answers = try (0..<3).map { _ in try probe.measure() }
    for answer in answers { #expect(answer.isKnown) }
    #expect(!probe.first.isKnown)
    #expect(answers[0].digests == probe.first.digests)
  }

  @Test func `a configuration without the policy has everything hashed`() throws {
    try program.waitForAge()
    let plain = program.path + "/data/plain"
    let (status, _) = try Programs.run(
      "/usr/bin/env", RootsProgram.asUser + [program.probe, "baseline", plain],
      environment: program.environment.merging(["PATH": "/usr/bin:/bin"]) { $1 })
    #expect(status == 0)
    let probe = try program.start(configuration: plain)
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test(arguments: ["text-patch", "memory-file", "restored-text", "dlopen", "mapped-file"])
  func `the same user changes the process, and it is hashed`(disturbance: String) throws {
    let (probe, known) = try program.startKnown()
    let answer = try probe.measure(disturbance)
    #expect(!answer.isKnown)
    #expect((answer.digests == known.digests) == (disturbance == "restored-text"))
    if disturbance.contains("te") { #expect(try !probe.measure().isKnown) }
  }

  @Test func `a forked child does not use what its parent knows`() throws {
    let (probe, _) = try program.startKnown()
    #expect(try !probe.measure("fork").isKnown)
  }

  @Test func `the user's own running program is known while the kernel refuses to write to it`() throws {
    try program.waitForAge()
    let own = program.path + "/data/own"
    try program.shell("cp \(program.probe) \(own) && chown \(RootsProgram.user) \(own)")
    let probe = try LongLivedProbe(
      RootsProgram.asUser + [own], configuration: program.configuration, environment: program.environment)
    let descriptor = unsafe open(own, O_WRONLY)
    let isRefused = descriptor < 0 && errno == ETXTBSY
    if descriptor >= 0 { close(descriptor) }
    #expect(try probe.measure().isKnown == isRefused)
    try program.shell("cp \(own) \(own)-new && mv \(own)-new \(own)")
    #expect(try !probe.measure().isKnown)
  }

  @Test func `root changes a byte of a library, and it is noticed`() throws {
    let (probe, known) = try program.startKnown()
    let file = try FileHandle(forUpdating: URL(filePath: program.library))
    try file.seek(toOffset: UInt64(try program.lastCodeOffset(in: probe.id)))
    try file.write(contentsOf: [0x5a])
    try file.close()
    let answer = try probe.measure()
    #expect(!answer.isKnown)
    #expect(answer.digests[3] != known.digests[3])
  }

  @Test func `a shared mapping from before a change of owner is noticed, although change times lag`() throws {
    try program.shell("chown \(RootsProgram.user) \(program.library)")
    let probe = try program.start()
    let offset = try program.lastCodeOffset(in: probe.id)
    let page = off_t(getpagesize())
    let file = unsafe open(program.library, O_RDWR)
    let start = unsafe mmap(nil, Int(page), PROT_READ | PROT_WRITE, MAP_SHARED, file, offset / page * page)!
    try #require(unsafe start != MAP_FAILED)
    defer { unsafe munmap(start, Int(page)) }
    close(file)
    // The page is dirty from now on. A second write would not change the file's times again before the page is written back.
    unsafe start.storeBytes(of: 0x11, toByteOffset: Int(offset % page), as: UInt8.self)
    try program.shell("chown 0 \(program.library)")
    unsafe start.storeBytes(of: 0x22, toByteOffset: Int(offset % page), as: UInt8.self)
    try program.waitForAge()
    _ = try probe.measure()
    let known = try probe.measure()
    #expect(known.isKnown)
    unsafe start.storeBytes(of: 0x33, toByteOffset: Int(offset % page), as: UInt8.self)
    let answer = try probe.measure()
    #expect(!answer.isKnown)
    #expect(answer.digests[3] != known.digests[3])
  }

  @Test(arguments: [
    "chown 65534 L/libcrypto.so.3", "chmod 775 L", "chmod 664 L/libcrypto.so.3", "chown 65534 L",
    "cp L/libcrypto.so.3 L/new && mv L/new L/libcrypto.so.3", "rm L/libcrypto.so.3",
  ])
  func `a file that others can change, or that was replaced, is hashed`(command: String) throws {
    let (probe, _) = try program.startKnown()
    try program.shell(
      command.replacing("L/", with: program.path + "/lib/").replacing(" L", with: " \(program.path)/lib"))
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test func `a mount over the library is noticed`() throws {
    try program.waitForAge()
    let probe = try program.start(before: ["unshare", "-m", "--propagation", "private"])
    #expect(try probe.measure().isKnown)
    try program.shell("nsenter -t \(probe.id) -m mount --bind /etc/passwd \(program.library)")
    #expect(try !probe.measure().isKnown)
  }

  @Test(arguments: [
    "mount -t tmpfs none L && cp P/libcrypto.so.3 L",
    "mount --bind L L && mount -o remount,bind,nosuid L",
    "mount -t tmpfs none P/over && mkdir P/over/u P/over/w && mount -t overlay none -o lowerdir=L,upperdir=P/over/u,workdir=P/over/w L",
  ])
  func `files on tmpfs, on OverlayFS or in a mount with nosuid are hashed`(mount: String) throws {
    try program.shell("cp \(program.library) \(program.path)/ && mkdir \(program.path)/over")
    try program.waitForAge()
    let words = mount.replacing("P/", with: program.path + "/").replacing(" L", with: " \(program.path)/lib")
      .replacing("=L", with: "=\(program.path)/lib")
    let probe = try program.start(
      before: ["unshare", "-m", "--propagation", "private", "sh", "-c", words + " && exec \"$0\" \"$@\""])
    usleep(2_500_000)
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test func `in a user namespace everything is hashed`() throws {
    try program.waitForAge()
    let probe = try program.start(as: RootsProgram.asUser + ["unshare", "--user", "--map-current-user"])
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test func `a prover with a capability is hashed`() throws {
    try program.waitForAge()
    let able = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    let probe = try program.start(as: RootsProgram.asUser + able)
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["HOLDFAST_SPEED"] != nil))
  func `known code takes at most a millisecond`() throws {
    let (probe, _) = try program.startKnown()
    let times = try (0..<101).map { _ in try probe.measure().microseconds }.sorted()
    print("known code: median \(times[50]) µs, p90 \(times[90]) µs")
    #expect(times[50] <= 1000)
  }
}
