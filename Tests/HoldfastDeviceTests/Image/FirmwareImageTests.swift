import Glibc
import HoldfastFirmware
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// The file, and what is refused in its place.
@Suite struct FirmwareImageTests {
  @Test func `the device that was made is the one that is opened`() throws {
    let issuer = PublicKeyJWK(point: try TestIssuer().point)
    let test = try TestImage(trusting: [issuer, issuer])
    let made = test.image.descriptor
    #expect(try test.place.mode("flash.img") == 0o600)
    #expect(try test.contents().count == FlashLayout.byteCount)
    try test.reopen()
    #expect(test.image.descriptor == made)
    #expect(test.image.policy == .forSimulatedLock)
    #expect(try test.image.issuers().map(\.keyID) == [issuer.computedKeyID()])
    let summary = try test.image.summary()
    #expect(summary.clockFloor == testTime && summary.bootCount == 0 && summary.audit.count == 3)
    let digest = PolicyReading(DevicePolicy.forSimulatedLock).digest
    #expect(
      try test.image.auditEntries(after: 0, limit: 9).map(\.event) == [
        .created(made.deviceID), .issuerTrusted(try #require(test.image.issuers().first?.keyID)), .policySeen(digest),
      ])
  }

  @Test func `nothing that has the name is overwritten`() throws {
    let test = try TestImage()
    let before = try test.contents()
    var random = TestRandom(state: 2)
    #expect(throws: FirmwareImageFault.file(FileError(.exists, at: test.path))) {
      _ = try FirmwareImage.create(at: test.path, random: &random, clock: TestClock())
    }
    #expect(try test.contents() == before)
    #expect(try test.place.names() == ["flash.img"])
  }

  @Test func `without a real clock no device is made`() throws {
    let place = try TemporaryFolder()
    let clock = TestClock()
    clock.seconds = nil
    var random = TestRandom(state: 2)
    #expect(throws: FirmwareImageFault.failed) {
      _ = try FirmwareImage.create(at: place.file("x"), random: &random, clock: clock)
    }
    #expect(try place.names() == [])
  }

  @Test func `what lies behind the flash is kept, and what is there is not looked at`() throws {
    let test = try TestImage()
    let behind = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    try test.reopen { $0 += behind }
    try test.image.add(ann, otp: hotpMethod, seal: nil)
    let after = try test.contents()
    #expect(after.count == FlashLayout.byteCount + behind.count)
    #expect(Array(after[FlashLayout.byteCount...]) == behind)
    try test.reopen()
    #expect(try test.image.users().map(\.name) == [ann])
  }

  @Test func `one process at a time has an image, also after a change`() throws {
    let test = try TestImage()
    let locked = FirmwareImageFault.file(FileError(.locked, at: test.path))
    #expect(throws: locked) { _ = try FirmwareImage.open(at: test.path) }
    try test.image.add(ann, otp: hotpMethod, seal: nil)
    #expect(throws: locked) { _ = try FirmwareImage.open(at: test.path) }
    #expect(try test.image.removeUser(ann, realClock: testTime))
    #expect(throws: locked) { _ = try FirmwareImage.open(at: test.path) }
    #expect(try test.place.names() == ["flash.img"])
  }

  @Test func `an image that is cut, blank, foreign, newer or half provisioned is refused for what it is`() throws {
    let test = try TestImage()
    let good = try test.contents()
    for pageCount in 0..<32 { #expect(try test.fault(of: Array(good[..<(pageCount * 4096)])) == .tooShort) }
    #expect(try test.fault(of: Array(good.dropLast())) == .tooShort)
    #expect(try test.fault(of: [UInt8](repeating: 0xff, count: good.count)) == .provision(.blank))
    #expect(try test.fault(of: [UInt8](repeating: 0, count: good.count)) == .provision(.foreign))
    var newer = good
    newer[4] = 2
    #expect(try test.fault(of: newer) == .provision(.newerVersion))
    var half = good
    for index in FlashLayout.pageByteCount * 4..<half.count { half[index] = 0xff }
    #expect(try test.fault(of: half) == .store(.blank))
    var erased = good
    for index in 0..<FlashLayout.pageByteCount { erased[index] = 0xff }
    #expect(try test.fault(of: erased) == .provision(.blank))
    #expect(try test.fault(of: good) == nil)
  }

  @Test func `whichever byte of the provision is another, the image is refused`() throws {
    let test = try TestImage()
    let good = try test.contents()
    let end = good[..<(4 * 4096)].lastIndex { $0 != 0xff }!
    for index in 0...end {
      var bytes = good
      bytes[index] ^= 0x10
      let fault = try test.fault(of: bytes)
      let isRefused = if case .provision? = fault { true } else { false }
      #expect(isRefused, "byte \(index)")
    }
  }

  @Test func `a key that is not that of the public half is no identity`() throws {
    let test = try TestImage()
    var bytes = try test.contents()
    try unsafe bytes.withUnsafeMutableBytes { memory in
      var cryptography = OpenSSLCryptography()
      var flash = unsafe SimulatedFlash(memory)
      let provision = try Provision(reading: flash, using: &cryptography)
      let other = Provision(
        deviceID: provision.deviceID, scalar: try P256PrivateKey().scalar(), publicPoint: provision.publicPoint,
        issuers: IssuerTable(), policy: FirmwarePolicy(.forSimulatedLock)!)
      try other.write(into: &flash, using: &cryptography)
    }
    #expect(try test.fault(of: bytes) == .provision(.damaged))
  }

  @Test(arguments: [0o644, 0o660, 0o604, 0o700, 0o400])
  func `only a file that is this user's alone is opened`(mode: Int) throws {
    let test = try TestImage()
    let path = try test.place.makeFile("other.img", try test.contents(), mode: mode)
    if mode & 0o077 == 0 {
      _ = try FirmwareImage.open(at: path)
    } else {
      #expect(throws: FirmwareImageFault.file(FileError(.tooOpen(mode: UInt32(mode)), at: path))) {
        _ = try FirmwareImage.open(at: path)
      }
    }
  }

  @Test func `links, folders, pipes, absent and overlong files are refused`() throws {
    let test = try TestImage()
    try test.place.makeFile("real.img", try test.contents())
    let place = test.place
    #expect(unsafe symlink("real.img", place.file("link")) == 0)
    #expect(unsafe mkdir(place.file("folder"), 0o700) == 0)
    #expect(unsafe mkfifo(place.file("pipe"), 0o600) == 0)
    try place.makeFile("long", [])
    #expect(unsafe truncate(place.file("long"), FirmwareImage.maximumByteCount + 1) == 0)
    let cases: [(String, FileError.Kind)] = [
      ("link", .symbolicLink), ("folder", .isDirectory), ("pipe", .notRegular), ("absent", .notFound),
      ("long", .tooLarge),
    ]
    for (name, kind) in cases {
      #expect(throws: FirmwareImageFault.file(FileError(kind, at: place.file(name)))) {
        _ = try FirmwareImage.open(at: place.file(name))
      }
    }
  }
}

/// Changes that do not come to the disk.
@Suite struct FirmwareImageWritingTests {
  enum Step: CaseIterable { case write, synchronize, rename }

  private func failing(at step: Step) -> FileOperations {
    var operations = FileOperations.system
    switch step {
    case .write: operations.write = { (_, _) throws(SystemError) in throw SystemError(ENOSPC) }
    case .synchronize: operations.synchronize = { _ throws(SystemError) in throw SystemError(EIO) }
    case .rename: operations.rename = { (_, _, _, _) throws(SystemError) in throw SystemError(EROFS) }
    }
    return operations
  }

  @Test(arguments: Step.allCases)
  func `where a change cannot be written, the old image stands and is what is seen`(step: Step) throws {
    let test = try TestImage()
    try test.image.add(ann, otp: hotpMethod, seal: nil)
    try test.reopen(operations: failing(at: step))
    let before = try test.contents()
    let summary = try test.image.summary()
    #expect(throws: LedgerFault.self) { try test.image.add(bob, otp: hotpMethod, seal: nil) }
    #expect(try test.image.summary() == summary)
    #expect(try test.image.users().map(\.name) == [ann])
    #expect(try test.contents() == before)
    #expect(try test.place.names() == ["flash.img"])
  }

  @Test(arguments: Step.allCases)
  func `where a new image cannot be written, there is none`(step: Step) throws {
    let place = try TemporaryFolder()
    var random = TestRandom(state: 1)
    #expect(throws: FirmwareImageFault.self) {
      _ = try FirmwareImage.create(
        at: place.file("flash.img"), random: &random, clock: TestClock(), operations: failing(at: step))
    }
    #expect(try place.names() == [])
  }
}
