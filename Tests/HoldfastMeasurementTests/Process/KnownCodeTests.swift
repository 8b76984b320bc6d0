import Foundation
import Testing

/// Attacks on code that a living prover knows to be unchanged. What only root can change is known; everything else is hashed.
@Suite(.serialized, .enabled(if: RootsProgram.isPossible), RootsPrograms()) struct KnownCodeTests {
  @Test func `code of root's is known from the second measurement on, and has the digests that hashing gives`() throws {
    let program = try RootsPrograms.shared()
    try program.waitForAge()
    let probe = try program.start()
    let answers = try (0..<3).map { _ in try probe.measure() }
    for answer in answers { #expect(answer.isKnown) }
    #expect(!probe.first.isKnown)
    #expect(answers[0].digests == probe.first.digests)
  }

  @Test func `a configuration without the policy has everything hashed`() throws {
    let program = try RootsPrograms.shared()
    try program.waitForAge()
    let probe = try program.start(configuration: program.plainConfiguration())
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test func `a proof for a configuration without the policy hashes again, although known code was just measured`()
    throws
  {
    let program = try RootsPrograms.shared()
    let (probe, known) = try program.startKnown()
    #expect(try probe.measure("complete " + program.plainConfiguration()).digests[3] != known.digests[3])
  }

  @Test func `what is known in one form of digests is not known in the other`() throws {
    let (probe, _) = try RootsPrograms.shared().startKnown()
    let flat = try probe.measure("under 1")
    let first = try probe.measure("under 3")
    #expect(flat.isKnown && !first.isKnown)
    #expect(zip(flat.digests, first.digests).count { $0 != $1 } == 2)
    let trees = try probe.measure()
    #expect(trees.isKnown && trees.digests == first.digests)
    let again = try probe.measure("under 1")
    #expect(again.isKnown && again.digests == flat.digests)
  }

  @Test(arguments: ["text-patch", "memory-file", "restored-text", "dlopen", "mapped-file", "writable-code"])
  func `the same user changes the process, and it is hashed`(disturbance: String) throws {
    let (probe, known) = try RootsPrograms.shared().startKnown()
    let answer = try probe.measure(disturbance)
    #expect(!answer.isKnown)
    #expect((answer.digests == known.digests) == (disturbance == "restored-text"))
    let isCodeFromAFile = disturbance == "dlopen" || disturbance == "mapped-file"
    if !isCodeFromAFile { #expect(try !probe.measure().isKnown) }
  }

  @Test func `a change in the middle of a measurement is noticed by it`() throws {
    let (probe, known) = try RootsPrograms.shared().startKnown()
    let answer = try probe.measure("meanwhile")
    #expect(!answer.isKnown)
    #expect(answer.digests[3] != known.digests[3])
  }

  @Test func `a forked child does not use what its parent knows`() throws {
    let (probe, _) = try RootsPrograms.shared().startKnown()
    #expect(try !probe.measure("fork").isKnown)
  }

  @Test func `the user's own running program is known while the kernel refuses to write to it`() throws {
    let program = try RootsPrograms.shared()
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

  @Test func `the user's own running program is hashed where the kernel refuses to write to it for another reason`()
    throws
  {
    let program = try RootsPrograms.shared()
    try program.waitForAge()
    let own = program.path + "/data/own-555"
    try program.shell("cp \(program.probe) \(own) && chmod 555 \(own) && chown \(RootsProgram.user) \(own)")
    let probe = try LongLivedProbe(
      RootsProgram.asUser + [own], configuration: program.configuration, environment: program.environment)
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test func `root changes a byte of a library, and it is noticed`() throws {
    let program = try RootsPrograms.fresh()
    let (probe, known) = try program.startKnown()
    let file = try FileHandle(forUpdating: URL(filePath: program.library))
    try file.seek(toOffset: UInt64(try program.lastCodeOffset(in: probe.id)))
    try file.write(contentsOf: [0x5a])
    try file.close()
    let answer = try probe.measure()
    #expect(!answer.isKnown)
    #expect(answer.digests[3] != known.digests[3])
  }

  @Test func `a file counts only when its change is more than two seconds ago`() throws {
    let program = try RootsPrograms.fresh()
    try program.waitForAge()
    let probe = try program.start()
    var areKnown: [Bool]?
    for _ in 0..<20 where areKnown == nil {
      try program.shell("chmod 755 \(program.library)")
      let found = try (0..<3).map { _ in try probe.measure().isKnown }
      // The change becomes old meanwhile if the processors are busy.
      if try program.age() <= 2 { areKnown = found }
    }
    #expect(areKnown == [false, false, false])
    try program.waitForAge()
    _ = try probe.measure()
    #expect(try probe.measure().isKnown)
  }

  @Test func `a shared mapping from before a change of owner is noticed, although change times lag`() throws {
    let program = try RootsPrograms.fresh()
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

  @Test func `files that others can change, or that were replaced, are hashed, however old the change is`() throws {
    let commands = [
      "chown 65534 L/libcrypto.so.3", "chmod 664 L/libcrypto.so.3", "chmod 775 L", "chown 65534 L",
      "cp L/libcrypto.so.3 L/new && mv L/new L/libcrypto.so.3", "rm L/libcrypto.so.3",
      // Another user could give himself write permission.
      "chown 65533 L/libcrypto.so.3", "chown 65533 L",
    ]
    let probes = try commands.map { command in
      let program = try RootsPrograms.fresh()
      let (probe, _) = try program.startKnown()
      try program.shell(
        command.replacing("L/", with: program.path + "/lib/").replacing(" L", with: " \(program.path)/lib"))
      return probe
    }
    usleep(RootsProgram.ageMicroseconds)
    for (command, probe) in zip(commands, probes) {
      for _ in 0..<2 { #expect(try !probe.measure().isKnown, "\(command)") }
    }
  }

  @Test func `a mount over the library is noticed, even of the library itself`() throws {
    let program = try RootsPrograms.shared()
    try program.waitForAge()
    let probe = try program.start(before: RootsProgram.inOwnMounts)
    #expect(try probe.measure().isKnown)
    try program.shell("nsenter -t \(probe.id) -m mount --bind \(program.library) \(program.library)")
    #expect(try !probe.measure().isKnown)
    #expect(try probe.measure().isKnown)
    try program.shell("nsenter -t \(probe.id) -m mount --bind /etc/passwd \(program.library)")
    #expect(try !probe.measure().isKnown)
  }

  @Test func `files on tmpfs, on OverlayFS or in a mount with nosuid are hashed`() throws {
    let program = try RootsPrograms.shared()
    try program.shell("cp \(program.library) \(program.path)/ && mkdir \(program.path)/over")
    try program.waitForAge()
    let mounts = [
      "mount -t tmpfs -o mode=755 none L && cp P/libcrypto.so.3 L",
      "mount --bind L L && mount -o remount,bind,nosuid L",
      "mount -t tmpfs none P/over && mkdir P/over/u P/over/w && mount -t overlay none -o lowerdir=L,upperdir=P/over/u,workdir=P/over/w L",
    ]
    let probes = try mounts.map { mount in
      let words = mount.replacing("P/", with: program.path + "/").replacing(" L", with: " \(program.path)/lib")
        .replacing("=L", with: "=\(program.path)/lib")
      return try program.start(before: RootsProgram.inOwnMounts + ["sh", "-c", words + " && exec \"$0\" \"$@\""])
    }
    usleep(RootsProgram.ageMicroseconds)
    for (mount, probe) in zip(mounts, probes) {
      for _ in 0..<2 { #expect(try !probe.measure().isKnown, "\(mount)") }
    }
  }

  @Test(.enabled(if: RootsProgram.hasTools("mkfs.xfs", "fuse2fs")))
  func `a library on XFS is known, and one on ext4 that a program serves by FUSE is hashed`() throws {
    let program = try RootsPrograms.fresh()
    let mounts = [
      "truncate -s 400M P/xfs && mkfs.xfs -q P/xfs && mount -o loop P/xfs P/lib",
      "truncate -s 64M P/ext4 && mke2fs -q -t ext4 P/ext4 && fuse2fs P/ext4 P/lib -o fakeroot,allow_other,nonempty "
        + "&& mount -o remount,bind,suid P/lib",
    ]
    try program.shell("cp \(program.library) \(program.path)/")
    let probes = try mounts.map { mount in
      let words = (mount + " && cp P/libcrypto.so.3 P/lib").replacing("P/", with: program.path + "/")
      return try program.start(
        before: RootsProgram.inOwnMounts + ["sh", "-c", "{ \(words); } > /dev/null && exec \"$0\" \"$@\""])
    }
    // The program that serves the files ends when the prover has ended.
    defer {
      for probe in probes {
        #expect(throws: Never.self) { try program.shell("nsenter -t \(probe.id) -m umount -l \(program.path)/lib") }
      }
    }
    usleep(RootsProgram.ageMicroseconds)
    for probe in probes { _ = try probe.measure() }
    #expect(try probes.map { try $0.measure().isKnown } == [true, false])
  }

  @Test func `in a user namespace everything is hashed, even if root is root there`() throws {
    let program = try RootsPrograms.shared()
    try program.waitForAge()
    let own = RootsProgram.asUser + ["unshare", "--user", "--map-current-user"]
    for probe in [try program.start(as: own), try program.start(before: RootsProgram.inMappedUsers)] {
      for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
    }
  }

  @Test(arguments: ["dac_override", "net_raw"])
  func `a prover with a capability is hashed, whatever the capability permits`(capability: String) throws {
    let program = try RootsPrograms.shared()
    try program.waitForAge()
    let able = ["--inh-caps=+\(capability)", "--ambient-caps=+\(capability)"]
    let probe = try program.start(as: RootsProgram.asUser + able)
    for _ in 0..<2 { #expect(try !probe.measure().isKnown) }
  }

  @Test func `a program's folder goes, even with mounts in use in it, and a file that cannot be removed is reported`()
    throws
  {
    let program = try RootsPrograms.fresh()
    try program.shell(
      "mount -t tmpfs none P/data && mkdir P/data/in && mount -t tmpfs none P/data/in && touch P/data/in/open"
        .replacing(
          "P/", with: program.path + "/"))
    let open = try FileHandle(forReadingFrom: URL(filePath: program.path + "/data/in/open"))
    defer { try? open.close() }
    program.remove()
    #expect(!FileManager.default.fileExists(atPath: program.path))
    let other = try RootsPrograms.fresh()
    try program.shell("chattr +i \(other.probe)")
    withKnownIssue { other.remove() }
    try program.shell("chattr -i \(other.probe)")
    other.remove()
    #expect(!FileManager.default.fileExists(atPath: other.path))
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["HOLDFAST_SPEED"] != nil))
  func `known code takes at most a millisecond`() throws {
    let (probe, _) = try RootsPrograms.shared().startKnown()
    let times = try (0..<101).map { _ in try probe.measure().microseconds }.sorted()
    print("known code: median \(times[50]) µs, p90 \(times[90]) µs")
    #expect(times[50] <= 1000)
  }
}
