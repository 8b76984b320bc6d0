import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastService
import Synchronization
import TestSupport
import Testing

/// Keys of the service, which operators introduce to devices and end there, by bulletins.
@Suite struct KeyOrderTests {
  @Test(arguments: TestedDatabase.installed)
  func `a device follows a rotation of keys, and never loses the old key without the new one`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let (old, new) = try test.rotation(after: 600)
    let device = try LedgerDevice(test.device, trusting: [old.point])
    #expect(throws: AdministrationFault.conflict(.noSuccessor)) { try test.end(old.id) }
    let record = try test.introduce(new.id, until: 10_000)
    #expect(record["for"]?.text == "front door" && record["key"]?.text == hexadecimal(new.id))
    #expect(
      record["introducer"]?.text == hexadecimal(old.id) && record["bulletin"] == .null && record["ended"] == .null)
    #expect(record["from"]?.number == TestFleet.now && record["until"]?.number == TestFleet.now + 10_000)
    try device.visit(test)
    #expect(try device.trusted == [old.id, new.id] && device.end(of: new.id) == TestFleet.now + 10_000)
    // The new key does not sign yet.
    #expect(throws: AdministrationFault.conflict(.noSuccessor)) { try test.end(old.id) }
    test.wait(seconds: 600)
    #expect(try test.end(old.id)["ended"]?.number == TestFleet.now + 600)
    _ = try test.end(old.id)
    let bulletin = try #require(try test.bulletins().only)
    #expect(try bulletin.says().issuer == old.id && bulletin.says().ended == [old.id])
    #expect(try Set(bulletin.says().introduced.keys) == [new.id] && bulletin.stamp.predecessor == 0)
    try device.visit(test)
    #expect(try device.trusted == [new.id])
    // A device that heard nothing before needs this bulletin only.
    let late = try LedgerDevice(test.device, trusting: [old.point])
    try late.visit(test)
    #expect(try late.trusted == [new.id] && late.results == [.taken, .refused, .refused])
    // One whose policy does not let the old key introduce others keeps it.
    let stubborn = try LedgerDevice(test.device, trusting: [old.point])
    stubborn.introducers = []
    try stubborn.visit(test)
    #expect(try stubborn.trusted == [old.id])
    let listed = try test.list("listKeyOrders")
    #expect(Set(listed.compactMap { $0["key"]?.text }) == [hexadecimal(old.id), hexadecimal(new.id)])
    #expect(listed.allSatisfy { $0["bulletin"]?.number == bulletin.stamp.number })
    let said = try #require(try test.list("listBulletins").only)
    #expect(said["introduced_keys"]?.number == 1 && said["ended_keys"]?.number == 1)
    let changes = try test.list("listChanges").filter { $0["action"]?.text?.hasSuffix("-key") == true }
    #expect(changes.compactMap { $0["action"]?.text } == ["device.end-key", "device.introduce-key"])
    #expect(changes.allSatisfy { $0["object"]?.text == hexadecimal(test.device.deviceID) })
  }

  @Test func `orders are listed by pages of 100, unless another number is asked for`() throws {
    let test = try TestFleet(.sqlite)
    let key = try test.rotation(after: 60).old.id
    for number: UInt8 in 1...101 {
      let device = try TestFleet.device(number)
      if number > 1 { try test.fleet.register(device, label: nil, by: test.owner) }
      let body = [("device", JSONValue.string(hexadecimal(device.deviceID))), ("without_successor", .bool(true))]
      _ = try test.perform("endKey", key: hexadecimal(key), body: .object(body))
    }
    let page = try test.perform("listKeyOrders")
    #expect(page["items"]?.elements?.count == 100)
    let rest = try test.perform("listKeyOrders", query: [("after", #require(page["next"]?.text))])
    #expect(rest["items"]?.elements?.count == 1 && rest["next"] == .null)
    #expect(try test.list("listKeyOrders", query: [("limit", "101")]).count == 101)
  }

  @Test(arguments: TestedDatabase.installed)
  func `after the last word of a key, its revocations need no bulletins, and those of the next key arrive`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let (old, new) = try test.rotation(after: 60)
    let device = try LedgerDevice(test.device, trusting: [old.point])
    let tokens = try (1...4).map { try test.issuedToken(TestApp(salt: $0)) }
    for token in tokens.prefix(2) {
      try test.revoke(token)
      _ = try test.bulletins()
      test.wait(seconds: 60)
    }
    _ = try test.introduce(new.id, until: 10_000, by: old.id)
    try device.visit(test)
    test.wait(seconds: 60)
    _ = try test.end(old.id)
    try test.revoke(tokens[2])
    let young = try test.issuedToken(TestApp(salt: 9))
    try test.revoke(young)
    try device.visit(test)
    #expect(try device.trusted == [new.id] && device.lists(young) && !device.lists(tokens[2]))
    #expect(device.results.count { $0 == .taken } == 5)
    test.wait(seconds: 600)
    try test.revoke(tokens[3])
    let bulletins = try test.bulletins()
    #expect(try bulletins.map { try $0.says().issuer } == [old.id, new.id])
    #expect(bulletins.allSatisfy { $0.stamp.predecessor == 0 })
    // The bulletin with the end is the one that makes devices refuse the revoked tokens.
    let listed = try test.list("listBulletins", query: [("token", hexadecimal(tokens[0]))])
    #expect(listed.only?["number"]?.number == bulletins[0].stamp.number)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a token of a key that ended for its device is superseded, and takes no room there`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let (old, new) = try test.rotation(after: 60)
    try test.setGroups(["north"], capacity: 2)
    func generation() throws -> UInt64? {
      _ = try test.bulletins()
      return try test.perform("showDevice", key: hexadecimal(test.device.deviceID))["generation"]?.number
    }
    let tokens = try (1...4).map { try test.issuedToken(TestApp(salt: $0)) }
    for token in tokens.prefix(2) { try test.revoke(token) }
    #expect(try generation() == 1)
    _ = try test.introduce(new.id, until: 10_000, group: "north")
    test.wait(seconds: 60)
    #expect(try test.standing(TestApp(salt: 51), tokens[2])?.status == .valid)
    _ = try test.end(old.id, group: "north")
    #expect(try test.standing(TestApp(salt: 52), tokens[2])?.status == .superseded)
    // The device keeps two revoked tokens, and a higher generation would exclude nothing.
    try test.setGroups(["north"], capacity: 1)
    #expect(try generation() == 1)
    try test.setGroups(["north"], capacity: 3)
    let young = try test.issuedToken(TestApp(salt: 9))
    for token in tokens.suffix(2) + [young] { try test.revoke(token) }
    test.wait(seconds: 60)
    #expect(try generation() == 1)
    let ofNew = try test.bulletins().map { try $0.says() }.filter { $0.issuer == new.id }
    #expect(ofNew.only?.revoked.keys.map { $0 } == [young])
  }

  @Test(arguments: TestedDatabase.installed)
  func `an end for a group silences the key in the bulletins of its devices, and not in those of others`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let other = try TestFleet.device(2)
    try test.fleet.register(other, label: nil, by: test.owner)
    try test.setGroups(["doors", "north"])
    let (old, new) = try test.rotation(after: 60)
    let tokens = try [test.issuedToken(TestApp(salt: 1)), test.issuedToken(TestApp(salt: 2), for: other)]
    try test.approveVersions(2...3)
    _ = try test.raise(2)
    for token in tokens { try test.revoke(token) }
    _ = try test.bulletins()
    _ = try test.introduce(new.id, until: 10_000, group: "north")
    test.wait(seconds: 60)
    _ = try test.end(old.id, group: "north")
    _ = try test.raise(3)
    let bulletins = try test.bulletins()
    let ofOld = try bulletins.filter { try $0.says().issuer == old.id }
    #expect(try ofOld.only?.says().ended == [old.id])
    #expect(try bulletins.count { try $0.says().versions.count == 1 } == 1, "under the new key only")
    #expect(try test.bulletins(for: other).only?.says().issuer == old.id)
    let own = try test.list("listBulletins").filter { $0["audience"]?.text == hexadecimal(test.device.deviceID) }
    let signers = own.compactMap { $0["signer"]?.text }
    #expect(signers.count { $0 == hexadecimal(old.id) } == 1 && signers.count == 2, "nothing after the end")
    #expect(throws: AdministrationFault.conflict(.endedKey)) { try test.introduce(new.id, until: 9000, by: old.id) }
    let device = try LedgerDevice(test.device, groups: ["doors", "north"], trusting: [old.point])
    try device.visit(test)
    #expect(try device.trusted == [new.id])
  }

  @Test(arguments: TestedDatabase.installed)
  func `the last word for a device repeats what the key introduced to its groups`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.setGroups(["north"])
    let (old, new) = try test.rotation(after: 60)
    _ = try test.introduce(new.id, until: 10_000, group: "north")
    test.wait(seconds: 60)
    _ = try test.end(old.id)
    let own = try test.bulletins().filter { $0.stamp.audience == AudienceID(test.device.deviceID.bytes) }
    #expect(try own.only?.says().introduced[new.id]?.until == TestFleet.now + 10_000)
    let device = try LedgerDevice(test.device, groups: ["north"], trusting: [old.point])
    try device.take(try #require(own.first))
    #expect(try device.trusted == [new.id])
    // Nothing that the old key says reaches the group's device any more.
    #expect(try test.bulletins().filter { try $0.says().issuer == old.id } == own)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a last word that is too long for one bulletin goes in several, and only the last one ends the key`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let groups = ["doors", "north"]
    try test.setGroups(groups)
    let keys = try (0..<6).map { _ in try test.rotation(after: 1000).new.id }
    let old = try test.signer()
    for (index, key) in keys.enumerated() { _ = try test.introduce(key, until: 9000, group: groups[index / 3]) }
    _ = try test.end(old.id, withoutSuccessor: true)
    let bulletins = try test.bulletins()
    try #require(bulletins.count == 2)
    #expect(bulletins.map(\.stamp.predecessor) == [0, bulletins[0].stamp.number])
    #expect(try bulletins.map { try $0.says().introduced.count } == [4, 2])
    #expect(try bulletins.map { try $0.says().ended } == [[], [old.id]])
    let device = try LedgerDevice(test.device, groups: groups, trusting: [old.point])
    try device.visit(test)
    #expect(try device.trusted == Set(keys))
  }

  @Test(arguments: TestedDatabase.installed)
  func `an introduced key ends by the key that introduced it, and by itself, in whatever order`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let (old, new) = try test.rotation(after: 86_400)
    _ = try test.introduce(new.id, until: 100_000)
    let first = try LedgerDevice(test.device, trusting: [old.point])
    try first.visit(test)
    let owned = try LedgerDevice(test.device, trusting: [old.point, new.point])
    test.wait(seconds: 60)
    // The key that signs now is the older one, which they trust.
    _ = try test.end(new.id)
    let bulletins = try test.bulletins()
    #expect(try bulletins.map { try $0.says().issuer } == [old.id, old.id, new.id])
    #expect(try bulletins[1].says().ended == [new.id] && bulletins[1].says().introduced.isEmpty)
    #expect(try bulletins[2].says().ended == [new.id])
    for device in [first, owned] {
      try device.visit(test)
      #expect(try device.trusted == [old.id])
    }
    let reversed = try LedgerDevice(test.device, trusting: [old.point])
    for _ in 0..<2 { for bulletin in bulletins.reversed() { try reversed.take(bulletin) } }
    #expect(try reversed.trusted == [old.id])
    #expect(throws: AdministrationFault.conflict(.endedKey)) { try test.introduce(new.id, until: 100_000) }
    #expect(throws: AdministrationFault.conflict(.endedKey)) { try test.introduce(new.id, until: 200_000) }
  }

  @Test(arguments: TestedDatabase.installed)
  func `the last word of a key ends what the key introduced and ended, also at a device that heard only the one`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let keys = try [60, 61].map { try test.rotation(after: $0).new }
    let old = try test.signer()
    for key in keys { _ = try test.introduce(key.id, until: 10_000) }
    let early = try LedgerDevice(test.device, trusting: [old.point])
    try early.visit(test)
    test.wait(seconds: 61)
    // The second key signs.
    _ = try test.end(keys[0].id, withoutSuccessor: true)
    _ = try test.bulletins()
    test.wait(seconds: 60)
    _ = try test.end(old.id)
    let said = try #require(try test.bulletins().map { try $0.says() }.first { $0.issuer == old.id })
    #expect(said.ended == [old.id, keys[0].id] && Set(said.introduced.keys) == [keys[1].id])
    let late = try LedgerDevice(test.device, trusting: [old.point])
    for device in [early, late] {
      try device.visit(test)
      #expect(try device.trusted == [keys[1].id])
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `old bulletins are merged with their keys, wherever a device begins, and what is over is left out`(
    database: TestedDatabase
  ) throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = 4_000_000
    let test = try TestFleet(database, policy: policy)
    let keys = try (0..<4).map { _ in try test.rotation(after: 1_000_000).new }
    let old = try test.signer()
    let devices = try [0, 1, 9, 20, 33, 47].map { first in
      (first: first, device: try LedgerDevice(test.device, trusting: [old.point]))
    }
    let tokens = try (0..<100).map { salt in try test.issuedToken(TestApp(salt: UInt8(salt))) }
    // The time of the last bulletin that is merged below.
    let lastMerged: UInt64 = 1_104_560
    for index in 0..<48 {
      for device in devices where device.first == index { try device.device.visit(test, times: 1) }
      switch index {
      case 2: _ = try test.introduce(keys[0].id, until: 2_000_000)
      case 3: _ = try test.introduce(keys[1].id, until: 1_000_100)
      case 8: _ = try test.introduce(keys[2].id, until: 3_000_000)
      case 9: _ = try test.introduce(keys[3].id, until: lastMerged)
      case 10: _ = try test.end(keys[0].id)
      default: try test.revoke(tokens[index])
      }
      test.wait(seconds: 60)
      _ = try test.bulletins()
    }
    for (first, device) in devices {
      try device.visit(test)
      #expect(try device.trusted == [old.id, keys[1].id, keys[2].id, keys[3].id], "\(first)")
    }
    let oldest = try #require(try test.bulletins().map { try $0.says() }.first { $0.issuer == old.id })
    #expect(Set(oldest.introduced.keys) == Set(keys.map(\.id)) && oldest.ended == [keys[0].id])
    #expect(oldest.revoked.count > 10)
    // What is over when a bulletin is merged, the merged one leaves out.
    test.wait(seconds: 1_100_000)
    for token in tokens[48..<96] {
      try test.revoke(token)
      test.wait(seconds: 60)
      _ = try test.bulletins()
    }
    let first = try #require(try test.bulletins().first { try $0.says().issuer == old.id })
    #expect(first.stamp.issuedAt == TestFleet.now + lastMerged)
    let merged = try first.says()
    #expect(Set(merged.introduced.keys) == [keys[0].id, keys[2].id])
    #expect(merged.ended == [keys[0].id])
  }
}

extension TestFleet {
  typealias PublicKey = (id: KeyID, point: P256Point)

  /// The first key of the service.
  func signer() throws -> PublicKey {
    let key = try #require(try fleet.issuerKeys().first)
    return (key.id, key.point)
  }

  /// Makes a key that signs after a time.
  func rotation(after seconds: UInt64) throws -> (old: PublicKey, new: PublicKey) {
    let now = try #require(clock.seconds)
    let id = try fleet.rotateIssuerKey(active: now + seconds, by: owner)
    let new = try #require(try fleet.issuerKeys().first { $0.id == id })
    return (try signer(), (id, new.point))
  }

  /// Introduces a key to the device, or to a group, until some seconds after the beginning of the test.
  @discardableResult
  func introduce(
    _ key: KeyID, until seconds: UInt64, group: String? = nil, by introducer: KeyID? = nil, from: UInt64? = nil,
    at fleet: Fleet? = nil
  ) throws -> JSONValue {
    var body = [target(group), ("until", .integer(Self.now + seconds))]
    if let introducer { body.append(("introducer", .string(hexadecimal(introducer)))) }
    if let from { body.append(("from", .integer(Self.now + from))) }
    return try perform("introduceKey", key: hexadecimal(key), body: .object(body), at: fleet)
  }

  /// Ends a key at the device, or at a group.
  @discardableResult
  func end(
    _ key: KeyID, group: String? = nil, withoutSuccessor: Bool = false, at fleet: Fleet? = nil
  ) throws -> JSONValue {
    let flag: [(String, JSONValue)] = withoutSuccessor ? [("without_successor", .bool(true))] : []
    return try perform("endKey", key: hexadecimal(key), body: .object([target(group)] + flag), at: fleet)
  }

  private func target(_ group: String?) -> (String, JSONValue) {
    group.map { ("group", .string($0)) } ?? ("device", .string(hexadecimal(device.deviceID)))
  }
}
