import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastStorage
import PowerCut
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

@Suite struct SignedPolicyTests {
  private static func key(_ byte: UInt8 = 1) throws -> P256PrivateKey {
    var secret = Secret<32>()
    secret.withMutableBytes { for index in $0.indices { $0[index] = byte } }
    return try P256PrivateKey(scalar: secret)
  }

  /// A signed policy that names only `command`.
  static func text(
    _ number: UInt64, _ command: String = "status", key byte: UInt8 = 1, device: DeviceID? = nil,
    type: String = SignedPolicy.type, more: [(String, JSONValue)] = []
  ) throws -> [UInt8] {
    let json = Array(#"{"version": 1, "commands": {"\#(command)": {"factors": []}}}"#.utf8)
    let claims = try SignedPolicy.claims(of: json, number: number, device: device, issued: testTime)
    var key = try key(byte)
    return try SignedJSON.sign(.object((claims.members ?? []) + more), type: type, with: &key)
  }

  static func point(_ byte: UInt8 = 1) throws -> P256Point { try key(byte).publicPoint }

  /// A device that accepts only policies of the first key.
  private func device() throws -> TestDevice {
    let device = try TestDevice()
    #expect(try device.folder.setPolicyKey(Self.point(), realClock: testTime))
    return device
  }

  private func put(_ text: [UInt8], in device: TestDevice) throws {
    let path = DeviceFile.signedPolicy.path(in: device.folder.path)
    try Data(text).write(to: URL(fileURLWithPath: path))
    #expect(unsafe chmod(path, 0o600) == 0)
  }

  private func names(_ reading: PolicyReading) -> [String] { reading.policy.commands.keys.map { $0.description } }

  private func refusal(_ body: () throws(PolicyFault) -> Void) -> PolicyFault? {
    do throws(PolicyFault) {
      try body()
      return nil
    } catch { return error }
  }

  @Test func `only a well-formed policy is signed`() {
    for json in ["{}", "[]", "", #"{"version": 1, "commands": {"status": {}}}"#] {
      #expect(throws: PolicyFault.self) {
        try SignedPolicy.claims(of: Array(json.utf8), number: 1, device: nil, issued: testTime)
      }
    }
  }

  @Test func `a device with a policy key takes only policies of that key, and none without a signature`() throws {
    let device = try device()
    let file = try device.folder.policy(of: device.ledger, isRecording: true)
    // The unsigned policy is still there, and no longer counts.
    #expect(file.read() == PolicyReading(fault: .unreadable, in: .signedPolicy))
    let unsigned = try Data(contentsOf: URL(fileURLWithPath: DeviceFile.policy.path(in: device.folder.path)))
    try put([UInt8](unsigned), in: device)
    #expect(file.read() == PolicyReading(fault: .notSigned, in: .signedPolicy))
    for (text, fault) in [
      (try Self.text(1, key: 2), PolicyFault.anotherKey),
      (try Self.text(1, type: "holdfast-posture-rules+jwt"), .notSigned),
      (try Self.text(1, device: DeviceID()), .anotherDevice),
    ] {
      try put(text, in: device)
      #expect(file.read() == PolicyReading(fault: fault, in: .signedPolicy))
    }
    try put(try Self.text(1, device: device.folder.descriptor.deviceID), in: device)
    let reading = file.read()
    #expect(reading.fault == nil && names(reading) == ["status"] && reading.number == 1)
  }

  @Test func `no byte of a signed policy can be changed`() throws {
    let text = try Self.text(1)
    let (key, id) = (try Self.point(), DeviceID())
    _ = try SignedPolicy(text, by: key, for: id)
    for index in text.indices {
      var changed = text
      changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(refusal { () throws(PolicyFault) in _ = try SignedPolicy(changed, by: key, for: id) } != nil, "\(index)")
    }
    _ = try SignedPolicy(text + [0x0d, 0x0a], by: key, for: id)
    for count in [0, 1, text.count / 2, text.count - 1] {
      let cut = Array(text[..<count])
      #expect(refusal { () throws(PolicyFault) in _ = try SignedPolicy(cut, by: key, for: id) } != nil, "\(count)")
    }
  }

  @Test func `claims that are missing, unknown or out of range are refused, although they are signed`() throws {
    let (key, id) = (try Self.point(), DeviceID())
    func fault(_ claims: [(String, JSONValue)]) throws -> PolicyFault? {
      var signer = try Self.key()
      let text = try SignedJSON.sign(.object(claims), type: SignedPolicy.type, with: &signer)
      return refusal { () throws(PolicyFault) in _ = try SignedPolicy(text, by: key, for: id) }
    }
    let policy = JSONValue.object([("version", .integer(1)), ("commands", .object([]))])
    let good: [(String, JSONValue)] = [("num", .integer(1)), ("iat", .integer(testTime)), ("policy", policy)]
    #expect(try fault(good) == nil)
    for index in good.indices {
      var claims = good
      claims.remove(at: index)
      #expect(try fault(claims) != nil, "\(good[index].0)")
    }
    for more in [("exp", JSONValue.integer(1)), ("device", .string("00")), ("device", .null)] {
      #expect(try fault(good + [more]) != nil)
    }
    #expect(try fault([("num", .integer(0))] + good.dropFirst()) != nil)
    #expect(try fault([("num", .integer(1 << 53))] + good.dropFirst()) != nil)
    #expect(try fault(good.dropLast() + [("policy", .object([("version", .integer(2))]))]) == .newerVersion)
  }

  @Test func `numbers never go back, also for another process and after a restart`() throws {
    let device = try device()
    let file = try device.folder.policy(of: device.ledger, isRecording: true)
    let (first, second) = (try Self.text(1, "a"), try Self.text(2, "b"))
    for (text, name) in [(first, "a"), (second, "b"), (second, "b")] {
      try put(text, in: device)
      #expect(names(file.read()) == [name])
    }
    try put(first, in: device)
    #expect(file.read() == PolicyReading(fault: .outdated(newest: 2), in: .signedPolicy))
    // Another policy with the newest number is no less an older one.
    try put(try Self.text(2, "c"), in: device)
    #expect(file.read() == PolicyReading(fault: .outdated(newest: 2), in: .signedPolicy))
    try device.reopenLedger()
    for isRecording in [false, true] {
      let next = try device.folder.policy(of: device.ledger, isRecording: isRecording)
      try put(first, in: device)
      #expect(next.read() == PolicyReading(fault: .outdated(newest: 2), in: .signedPolicy))
      try put(second, in: device)
      #expect(names(next.read()) == ["b"])
    }
  }

  @Test func `looking at a newer policy does not record it`() throws {
    let device = try device()
    try put(try Self.text(5, "a"), in: device)
    #expect(names(try device.folder.policy(of: device.ledger).read()) == ["a"])
    #expect(try device.ledger.policyTrust()?.number == 0)
    #expect(names(try device.folder.policy(of: device.ledger, isRecording: true).read()) == ["a"])
    #expect(try device.ledger.policyTrust()?.number == 5)
  }

  @Test func `a policy that cannot be recorded allows nothing, and is tried again`() throws {
    let device = try device()
    try put(try Self.text(1, "a"), in: device)
    let file = try device.folder.policy(of: device.ledger, isRecording: true)
    try device.tamper("ALTER TABLE policy_key RENAME TO hidden")
    #expect(file.read() == PolicyReading(fault: .unrecorded, in: .signedPolicy))
    try device.tamper("ALTER TABLE hidden RENAME TO policy_key")
    #expect(names(file.read()) == ["a"])
  }

  @Test func `a policy is installed by another process while the device is open, and an older one is not`() throws {
    let device = try device()
    let open = try device.opened()
    let owner = try device.folder.openLedger()
    #expect(try device.folder.install(signedPolicy: Self.text(3, "a"), in: owner).number == 3)
    #expect(open.watch.policy(realClock: nil).commands.keys.map { $0.description } == ["a"])
    #expect(
      refusal { () throws(PolicyFault) in
        _ = try device.folder.install(signedPolicy: (try? Self.text(2, "b")) ?? [], in: owner)
      } == .outdated(newest: 3))
    #expect(open.watch.policy(realClock: nil).commands.keys.map { $0.description } == ["a"])
    // The owner's number counts at once: an older file that was put there meanwhile is refused.
    try device.folder.install(signedPolicy: Self.text(7, "c"), in: owner)
    try put(try Self.text(6, "d"), in: device)
    #expect(open.watch.policy(realClock: nil) == .denyAll)
    let events = try device.ledger.auditEntries(limit: 100).map(\.event)
    #expect(events.contains(.policySeen(nil)))
    // A key is not changed under a server's feet.
    #expect(throws: DeviceFolderFault.folder(FileError(.locked, at: device.folder.path))) {
      try device.folder.setPolicyKey(nil, realClock: testTime)
    }
  }

  @Test func `an installed policy outdates the one before, even if no round was in between`() throws {
    let device = try device()
    let open = try device.opened()
    let owner = try device.folder.openLedger()
    try device.folder.install(signedPolicy: Self.text(1, "a"), in: owner)
    let old = try Data(contentsOf: URL(fileURLWithPath: DeviceFile.signedPolicy.path(in: device.folder.path)))
    #expect(open.watch.policy(realClock: nil) != .denyAll)
    try device.folder.install(signedPolicy: Self.text(2, "b"), in: owner)
    try put([UInt8](old), in: device)
    #expect(open.watch.policy(realClock: nil) == .denyAll)
  }

  @Test func `another key begins its numbers anew, the same key does not, and both are audited`() throws {
    let device = try device()
    try device.folder.install(signedPolicy: Self.text(9, "a"), in: device.ledger)
    #expect(try !device.folder.setPolicyKey(Self.point(), realClock: testTime))
    #expect(try device.ledger.policyTrust()?.number == 9)
    #expect(try device.folder.setPolicyKey(Self.point(2), realClock: testTime))
    #expect(try device.folder.policy(of: device.ledger).read().fault == .anotherKey)
    try device.folder.install(signedPolicy: Self.text(1, "b", key: 2), in: device.ledger)
    #expect(try device.folder.setPolicyKey(nil, realClock: testTime))
    #expect(try device.folder.policy(of: device.ledger).read().policy == .forSimulatedLock)
    let keys = try device.ledger.auditEntries(limit: 100).compactMap { entry -> KeyID?? in
      if case .policyKeySet(let keyID) = entry.event { .some(keyID) } else { nil }
    }
    #expect(keys.count == 3 && keys[0] != nil && keys[0] != keys[1] && keys[2] == .some(nil))
  }

  @Test func `a reset device keeps the policy key, the number and the policy`() throws {
    let device = try device()
    try device.folder.install(signedPolicy: Self.text(4, "a"), in: device.ledger)
    var random = TestRandom(state: 7)
    let folder = try DeviceFolder.reset(at: device.folder.path, random: &random, clock: device.clock)
    let ledger = try folder.openLedger()
    #expect(names(try folder.policy(of: ledger).read()) == ["a"])
    #expect(try ledger.policyTrust()?.number == 4)
  }

  @Test func `a device that is made with a policy key denies everything until a policy is installed`() throws {
    let place = try TemporaryFolder()
    var random = TestRandom(state: 1)
    let folder = try DeviceFolder.create(
      at: place.path + "/device", policy: .denyAll, policyKey: Self.point(), random: &random, clock: TestClock())
    let ledger = try folder.openLedger()
    #expect(try folder.policy(of: ledger).read() == PolicyReading(fault: .unreadable, in: .signedPolicy))
    try folder.install(signedPolicy: Self.text(1, "a"), in: ledger)
    #expect(names(try folder.policy(of: ledger).read()) == ["a"])
    #expect(try ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `a power cut at any point of an installation leaves the old policy or the new one in force`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let issuer = try TestIssuer()
    let script = DeviceScript(in: place, issuers: [issuer])
    let recorder = try DiskRecorder(folder: place.path)
    try recorder.recording {
      try script.make()
      try DeviceFolder.open(at: script.path).setPolicyKey(Self.point(), realClock: testTime)
      try script.open()
      _ = try script.device.folder.install(signedPolicy: Self.text(1, "old"), in: script.device.ledger)
    }
    let begin = recorder.changes.count
    try recorder.recording {
      _ = try script.device.folder.install(signedPolicy: Self.text(2, "new"), in: script.device.ledger)
    }
    let changes = recorder.changes
    var faults: [String] = []
    try PowerCuts(changes).forEach(stage: { $0 < begin ? 0 : 1 }) { cut in
      guard cut.changeCount >= begin, faults.count < 5 else { return }
      let next = try TemporaryFolder(in: memoryFolder)
      try cut.image.write(to: next.path)
      let folder = try DeviceFolder.open(at: next.path + "/device")
      let ledger = try folder.openLedger()
      let reading = try folder.policy(of: ledger, isRecording: true).read()
      let isDone = cut.changeCount == changes.count
      if reading.fault != nil || (isDone && names(reading) != ["new"]) {
        faults.append("\(cut): \(String(describing: reading.fault)) \(names(reading))")
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }
}
