import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice

@Suite struct TPMKeyTests {
  private let tpm = FakeTPM()
  private let place: TemporaryFolder
  private let clock = TestClock()

  init() throws { place = try TemporaryFolder() }

  private func make(
    _ name: String = "lock", counter: Bool = false, seed: UInt64 = 1
  ) throws(DeviceFolderFault) -> DeviceFolder {
    var random = TestRandom(state: seed)
    return try DeviceFolder.create(
      at: place.file(name), policy: .forSimulatedLock, tpm: counter ? FakeTPM.path : nil, keyTPM: FakeTPM.path,
      operations: tpm.operations, random: &random, clock: clock)
  }

  private func open(_ name: String = "lock") throws(DeviceFolderFault) -> DeviceFolder {
    try DeviceFolder.open(at: place.file(name), operations: tpm.operations)
  }

  private func reset(_ name: String = "lock") throws(DeviceFolderFault) -> DeviceFolder {
    var random = TestRandom(state: 7)
    return try DeviceFolder.reset(at: place.file(name), operations: tpm.operations, random: &random, clock: clock)
  }

  private func keyFile(_ name: String = "lock") -> String { DeviceFile.key.path(in: place.file(name)) }

  @Test func `the folder names the key, and a session opens a token with it`() throws {
    let made = try make()
    let folder = try open()
    #expect(folder.tpmKey == made.tpmKey && folder.hasKey)
    #expect(tpm.handles == [try #require(folder.tpmKey).handle])
    #expect((0x8140_0000...0x817f_ffff).contains(try #require(folder.tpmKey).handle))
    let issuer = try TestIssuer()
    try folder.openLedger().trust(.signing(issuer.point), realClock: testTime)
    let device = try OpenDevice(folder: folder, random: SystemRandom(), clock: clock)
    var session = try device.session(actuator: LockActuator(try folder.openLock()))
    let claims = TestClaims(for: folder.descriptor.deviceID)
    let token = try issuer.token(claims, to: folder.descriptor.publicKey.point, flaws: TokenFlaws())
    let prover = TestProver(claims, token: token)
    let answer = try prover.answer(try session.challenge(), command: "unlock")
    let reply = session.respond(to: answer.message.span, waitedMilliseconds: 0)
    #expect(try prover.open(reply.message, after: answer).status == .accepted)
    // Without the TPM, a whole token cannot be opened, and nothing else happens.
    tpm.fail(FakeTPM.Failure(call: 1, isLasting: true))
    let newToken = try issuer.token(claims, to: folder.descriptor.publicKey.point, flaws: TokenFlaws())
    let other = TestProver(claims, token: newToken)
    let second = try other.answer(try session.challenge(), command: "lock")
    let refusal = session.respond(to: second.message.span, waitedMilliseconds: 0).message
    // The array of type 3, status 1 (tokenInvalid), and no sealed part.
    #expect(refusal == [0x83, 3, 1, 0xf6])
  }

  @Test func `a TPM that was silent is not asked again at once, and one that refused is`() throws {
    let place = try #require(TPMKeyPlace(tpm: FakeTPM.path, deviceID: DeviceID(filledWith: 1)))
    let peer = try TestIssuer().point
    for (fault, calls) in [(CounterFault.notOurs, 2), (.silent, 1)] {
      let key = TPMKey(place, authorization: Secret<32>(), operations: tpm.operations.keys)
      tpm.fail(FakeTPM.Failure(call: 1, isLasting: true, fault: fault))
      for _ in 0..<2 {
        #expect(throws: fault) {
          var shared = Secret<32>()
          try key.agree(with: peer, into: &shared)
        }
      }
      #expect(tpm.calls == calls)
    }
  }

  @Test func `no file of the folder holds anything that opens a token without the TPM`() throws {
    let folder = try make(counter: true)
    let text = try String(contentsOfFile: keyFile(), encoding: .utf8)
    #expect(!text.contains("\"d\""))
    let members = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    #expect(Set(members.keys) == ["tpm", "handle", "authorization", "check"])
    #expect(tpm.indices == [try #require(folder.counter).index])
  }

  @Test func `a copy of the folder is of no use with another TPM`() throws {
    _ = try make()
    let other = FakeTPM()
    #expect(throws: DeviceFolderFault.key(.notDefined)) {
      try DeviceFolder.open(at: place.file("lock"), operations: other.operations)
    }
  }

  @Test(arguments: [false, true])
  func `another key in its place is not taken for it`(keepsAuthorization: Bool) throws {
    let first = try #require(try make("first").tpmKey)
    let second = try #require(try make("second", seed: 2).tpmKey)
    tpm.exchangeKeys(first.handle, second.handle, keepsAuthorization: keepsAuthorization)
    let fault: DeviceFolderFault = keepsAuthorization ? .file(.key, .otherDevice) : .key(.notOurs)
    #expect(throws: fault) { try open("first") }
    #expect(throws: fault) { try open("second") }
  }

  @Test func `the key file of another device in the same TPM is refused`() throws {
    _ = try make("first")
    _ = try make("second", seed: 2)
    try FileManager.default.removeItem(atPath: keyFile("first"))
    try FileManager.default.copyItem(atPath: keyFile("second"), toPath: keyFile("first"))
    #expect(throws: DeviceFolderFault.file(.key, .otherDevice)) { try open("first") }
  }

  @Test(arguments: [
    (#""handle":21"#, #""handle":11"#), (#""handle":"#, #""handle":0"#), (#""tpm":"/fake""#, #""tpm":"fake""#),
    (#""authorization":""#, #""authorization":"A"#), (#""authorization""#, #""autorisation""#), ("}\n", ",\"x\":1}"),
    ("}\n", ""), ("}\n", "}}"), (#""check":""#, #""check":"_"#),
  ])
  func `a key file with anything else in it is corrupt`(good: String, bad: String) throws {
    _ = try make()
    let text = try String(contentsOfFile: keyFile(), encoding: .utf8)
    try #require(text.contains(good))
    try text.replacing(good, with: bad).write(toFile: keyFile(), atomically: false, encoding: .utf8)
    #expect(throws: DeviceFolderFault.file(.key, .corrupt)) { try open() }
  }

  @Test func `a key file that ends anywhere is corrupt`() throws {
    _ = try make()
    let bytes = Array(try String(contentsOfFile: keyFile(), encoding: .utf8).utf8)
    for count in 0..<bytes.count - 1 {
      let start = Array(bytes.prefix(min(count, 7)))
      let isOne = TPMKeyRecord.isOne(start.span)
      #expect(!isOne, "\(count) bytes")
      try Data(bytes[..<count]).write(to: URL(filePath: keyFile()))
      #expect(throws: DeviceFolderFault.file(.key, .corrupt), "\(count) bytes") { try open() }
    }
  }

  @Test(arguments: [1, 2, 3, 4, 5])
  func `a device that could not be made leaves neither key nor counter behind`(call: Int) throws {
    tpm.fail(FakeTPM.Failure(call: call, fault: .full))
    #expect(throws: DeviceFolderFault.self) { try make(counter: true) }
    #expect(tpm.handles.isEmpty && tpm.indices.isEmpty)
    tpm.fail(nil)
    _ = try make(counter: true)
    #expect(tpm.handles.count == 1 && tpm.indices.count == 1)
  }

  @Test func `a device whose files cannot be written leaves neither key nor counter behind`() throws {
    let policy = DeviceFile.policy.path(in: place.file("lock"))
    var random = IntrusiveRandom {
      try? FileManager.default.createDirectory(atPath: policy, withIntermediateDirectories: false)
    }
    #expect(throws: DeviceFolderFault.self) {
      _ = try DeviceFolder.create(
        at: place.file("lock"), policy: .forSimulatedLock, tpm: FakeTPM.path, keyTPM: FakeTPM.path,
        operations: tpm.operations, random: &random, clock: clock)
    }
    #expect(tpm.calls > 2)
    #expect(tpm.handles.isEmpty && tpm.indices.isEmpty)
  }

  @Test func `a place that is in use is left alone, and the device gets another id`() throws {
    let first = try #require(try make("first").tpmKey)
    let second = try #require(try make("second", seed: 1).tpmKey)
    #expect(first != second)
    #expect(tpm.handles == [first.handle, second.handle])
    _ = try open("first")
  }

  @Test func `a reset device has another key in the TPM, and the old one is gone`() throws {
    let old = try make()
    let new = try reset()
    #expect(new.descriptor.publicKey != old.descriptor.publicKey)
    #expect(tpm.handles == [try #require(new.tpmKey).handle])
    _ = try open()
  }

  /// The calls of a reset are: make, agree, remove.
  @Test(arguments: 1...3, [false, true])
  func `a reset whose TPM fails is done again, and never falls back to a file`(call: Int, isDone: Bool) throws {
    _ = try make()
    tpm.fail(FakeTPM.Failure(call: call, isDone: isDone))
    #expect(throws: DeviceFolderFault.self) { _ = try reset() }
    tpm.fail(nil)
    let folder = try reset()
    #expect(folder.tpmKey != nil)
    _ = try open()
  }

  @Test func `a shared secret and a public point are read from a TPM's answer with or without leading zeros`() throws {
    let x = [UInt8](1...32)
    var whole: [UInt8] = [0, 68, 0, 32] + x + [0, 32] + x
    var shared = Secret<32>()
    try whole.span.readShared(into: &shared)
    #expect(shared.withBytes { Array($0) } == x)
    let short: [UInt8] = [0, 67, 0, 31] + x.dropLast() + [0, 32] + x
    try short.span.readShared(into: &shared)
    #expect(shared.withBytes { Array($0) } == [0] + x.dropLast())
    for count in whole.indices {
      let cut = Array(whole[..<count])
      #expect(throws: CounterFault.malformed) { try cut.span.readShared(into: &shared) }
    }
    whole.append(0)
    #expect(throws: CounterFault.malformed) { try whole.span.readShared(into: &shared) }
    for count in 0..<90 {
      let cut = [UInt8](repeating: 0, count: count)
      #expect(throws: CounterFault.malformed) { try cut.span.createdPoint() }
    }
  }
}
