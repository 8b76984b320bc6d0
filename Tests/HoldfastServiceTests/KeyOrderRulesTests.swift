import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastService
import HoldfastStorage
import Synchronization
import TestSupport
import Testing

/// The orders about keys that are refused, and those that survive other operators, complete sets and restores.
@Suite struct KeyOrderRulesTests {
  @Test(arguments: TestedDatabase.installed)
  func `an introduction changes until a bulletin says it, and a key introduces at most four`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let keys = try (0..<6).map { _ in try test.rotation(after: 1000).new.id }
    let old = try test.signer().id
    _ = try test.introduce(keys[0], until: 2000)
    #expect(try test.introduce(keys[0], until: 3000, from: 10)["until"]?.number == TestFleet.now + 3000)
    _ = try test.bulletins()
    #expect(throws: AdministrationFault.conflict(.introducedKey)) { try test.introduce(keys[0], until: 2000) }
    #expect(throws: AdministrationFault.conflict(.introducedKey)) { try test.introduce(keys[0], until: 3000, from: 11) }
    // The same again changes nothing, and is no entry in the log of changes.
    #expect(try test.introduce(keys[0], until: 3000)["from"]?.number == TestFleet.now + 10)
    for key in keys[1..<4] { _ = try test.introduce(key, until: 9000) }
    #expect(throws: AdministrationFault.conflict(.tooMany)) { try test.introduce(keys[4], until: 9000) }
    _ = try test.end(keys[1])
    #expect(throws: AdministrationFault.conflict(.tooMany)) { try test.introduce(keys[4], until: 9000) }
    test.wait(seconds: 60)
    #expect(try test.bulletins().last { try $0.says().issuer == old }?.says().introduced.count == 2)
    #expect(try test.list("listChanges").count { $0["action"]?.text == "device.introduce-key" } == 5)
    // The first introduction is over. Devices that had it would not take another.
    test.wait(seconds: 3000)
    _ = try test.introduce(keys[4], until: 9000, by: old)
    #expect(throws: AdministrationFault.conflict(.introducedKey)) { try test.introduce(keys[0], until: 9000, by: old) }
    let device = try LedgerDevice(test.device, trusting: [test.signer().point])
    try device.visit(test)
    #expect(try device.trusted == [old, keys[2], keys[3], keys[4]])
    // So is one of which the service does not know whether a bulletin that was merged said it.
    _ = try test.introduce(keys[5], until: 3100, by: keys[2])
    test.wait(seconds: 100)
    #expect(throws: AdministrationFault.conflict(.introducedKey)) {
      try test.introduce(keys[5], until: 9000, by: keys[2])
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `what cannot work is refused, and changes nothing`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.setGroups(["north"])
    let (old, new) = try test.rotation(after: 1000)
    let (later, stranger) = (try test.rotation(after: 2000).new.id, KeyID(filledWith: 7))
    let app = try #require(try test.list("listAppKeys").first?["id"]?.text)
    let cases: [(AdministrationFault, () throws -> JSONValue)] = [
      (.notFound, { try test.introduce(stranger, until: 9000) }),
      (.notFound, { try test.introduce(new.id, until: 9000, by: stranger) }),
      (.notFound, { try test.introduce(new.id, until: 9000, group: "south") }),
      (.notFound, { try test.end(stranger) }),
      (.notFound, { try test.end(old.id, group: "south", withoutSuccessor: true) }),
      (.conflict(.cannotIntroduce), { try test.introduce(old.id, until: 9000) }),
      (.conflict(.cannotIntroduce), { try test.introduce(later, until: 9000, by: new.id) }),
      (.conflict(.pastTime), { try test.introduce(new.id, until: 0) }),
      (.conflict(.pastTime), { try test.introduce(new.id, until: 5000, from: 5000) }),
      (.conflict(.pastTime), { try test.introduce(new.id, until: 1000) }),
      (.conflict(.noSuccessor), { try test.end(old.id) }),
      (.conflict(.noSuccessor), { try test.end(old.id, group: "north") }),
    ]
    for (index, (fault, body)) in cases.enumerated() {
      #expect(throws: fault, "\(index)") { try body() }
    }
    let device = ("device", JSONValue.string(hexadecimal(test.device.deviceID)))
    let until = ("until", JSONValue.integer(TestFleet.now + 9000))
    for body in [
      [until], [device], [device, until, ("group", .string("north"))], [device, until, ("days", .integer(3))],
    ] {
      #expect(throws: AdministrationFault.self) {
        try test.perform("introduceKey", key: hexadecimal(new.id), body: .object(body))
      }
    }
    for key in ["", "00", app, String(repeating: "00", count: 16)] {
      #expect(throws: AdministrationFault.notFound, "\(key)") {
        try test.perform("endKey", key: key, body: .object([device, ("without_successor", .bool(true))]))
      }
    }
    #expect(try test.list("listKeyOrders").isEmpty && test.bulletins().isEmpty)
    #expect(try test.list("listChanges").allSatisfy { $0["action"]?.text?.hasSuffix("-key") == false })
    // An operator who knows better may end the only key.
    _ = try test.end(old.id, withoutSuccessor: true)
    #expect(throws: AdministrationFault.conflict(.endedKey)) { try test.introduce(new.id, until: 9000) }
    #expect(try test.bulletins().only?.says().introduced.isEmpty == true)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a key ends only where the one that signs now was introduced, or is the older one`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.setGroups(["north", "doors"])
    let (old, new) = try test.rotation(after: 60)
    test.wait(seconds: 60)
    _ = try test.introduce(new.id, until: 9000, group: "north", by: old.id)
    #expect(throws: AdministrationFault.conflict(.noSuccessor)) { try test.end(old.id, group: "doors") }
    _ = try test.end(old.id, group: "north")
    _ = try test.end(old.id)
    let next = try test.rotation(after: 1000).new
    // Whoever introduced the key that signs now introduces the next one, until it ends.
    try test.setGroups(["north", "doors", "south"])
    _ = try test.introduce(new.id, until: 9000, group: "south", by: old.id)
    #expect(try test.introduce(next.id, until: 9000, group: "south")["introducer"]?.text == hexadecimal(old.id))
    #expect(try test.introduce(next.id, until: 9000, group: "north")["introducer"]?.text == hexadecimal(new.id))
    // Devices that know the next key have the one that signs now.
    _ = try test.end(next.id, group: "doors")
    test.wait(seconds: 9000)
    #expect(throws: AdministrationFault.conflict(.noSuccessor)) { try test.end(new.id) }
    // Devices of that group no longer trust the key that signs now.
    #expect(throws: AdministrationFault.conflict(.noSuccessor)) { try test.end(old.id, group: "south") }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a complete set introduces and ends keys again`(database: TestedDatabase) throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = 1000
    let test = try TestFleet(database, policy: policy)
    let short = try test.rotation(after: 500).new
    let keys = try (0..<3).map { _ in try test.rotation(after: 100_000).new }
    let old = try test.signer()
    for key in keys.prefix(2) { _ = try test.introduce(key.id, until: 200_000) }
    // This one is over in the second of the complete set.
    _ = try test.introduce(short.id, until: 1130)
    var early = try LedgerDevice(test.device, trusting: [old.point])
    try early.visit(test)
    test.wait(seconds: 60)
    _ = try test.end(keys[0].id)
    for salt: UInt8 in 0...244 { try test.revoke(test.issuedToken(TestApp(salt: salt))) }
    _ = try test.bulletins()
    test.wait(seconds: 1070)
    _ = try test.introduce(keys[2].id, until: 200_000, by: old.id)
    let set = try test.bulletins().filter { try $0.says().issuer == old.id }
    #expect(set.first?.stamp.predecessor == 0)
    let said = try #require(try set.only?.says())
    #expect(said.revoked.isEmpty && Set(said.introduced.keys) == Set(keys.map { $0.id }) && said.ended == [keys[0].id])
    for _ in 0..<2 {
      try early.visit(test)
      #expect(try early.trusted == [old.id, keys[1].id, keys[2].id])
      early = try LedgerDevice(test.device, trusting: [old.point])
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service knows its orders about keys, and devices keep those that it lost`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let (old, new) = try test.rotation(after: 60)
    let third = try test.rotation(after: 600).new
    let device = try LedgerDevice(test.device, trusting: [old.point])
    _ = try test.introduce(new.id, until: 9000)
    try device.visit(test)
    test.wait(seconds: 60)
    _ = try test.introduce(third.id, until: 9000, by: old.id)
    let backup = try Backup(of: test.fleet)
    // All this is lost.
    _ = try test.end(old.id)
    try device.visit(test)
    test.wait(seconds: 60)
    for isComplete in [true, false] {
      let folder = try TemporaryFolder()
      let fleet = try backup.restored(in: folder, on: database, isComplete: isComplete, clock: test.clock)
      let orders = try test.list("listKeyOrders", at: fleet)
      #expect(Set(orders.compactMap { $0["key"]?.text }) == [hexadecimal(new.id), hexadecimal(third.id)])
      #expect(throws: AdministrationFault.conflict(.introducedKey)) {
        try test.introduce(new.id, until: 8000, by: old.id, at: fleet)
      }
      let fresh = try LedgerDevice(test.device, trusting: [old.point])
      for bulletin in try fleet.bulletins(for: test.device.deviceID, above: 0) {
        try fresh.take(bulletin)
        try device.take(bulletin)
      }
      #expect(try fresh.trusted == [old.id, new.id, third.id] && device.trusted == [new.id, third.id])
      // What was lost is said again, and a device that knows it loses nothing.
      _ = try test.end(old.id, at: fleet)
      test.wait(seconds: 60)
      for bulletin in try fleet.bulletins(for: test.device.deviceID, above: 0) {
        try fresh.take(bulletin)
        try device.take(bulletin)
      }
      #expect(try fresh.trusted == [new.id, third.id] && device.trusted == [new.id, third.id])
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `of operators at once, none introduces a key that another has ended, and one bulletin says the end`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let keys = try (0..<3).map { _ in try test.rotation(after: 1000).new.id }
    let fleets = try (0..<4).map { _ in try test.instance() }
    let outcomes = Mutex<[String]>([])
    let threads = try fleets.indices.map { index in
      let (fleet, target) = (fleets[index], ("device", JSONValue.string(hexadecimal(test.device.deviceID))))
      return try HoldfastLinux.Thread {
        for key in keys {
          let name = index < 2 ? "introduceKey" : "endKey"
          let until = ("until", JSONValue.integer(TestFleet.now + 9000 + UInt64(index)))
          let body = JSONValue.object(index < 2 ? [target, until] : [target])
          let operation = AdministrationOperation.all.first { $0.name == name }
          let outcome: String
          do {
            _ = try operation?.perform(fleet, by: .local("owner"), key: hexadecimal(key), body: body)
            outcome = "done"
          } catch AdministrationFault.conflict(let conflict) { outcome = conflict.rawValue } catch {
            outcome = "\(error)"
          }
          outcomes.withLock { $0.append(outcome) }
          _ = try? fleet.bulletins(for: fixed([UInt8](repeating: 1, count: 16)), above: 0)
        }
      }
    }
    for thread in threads { thread.join() }
    let found = outcomes.withLock { $0 }
    #expect(found.count == 12 && found.allSatisfy { ["done", "endedKey", "introducedKey"].contains($0) }, "\(found)")
    test.wait(seconds: 60)
    let answers = try fleets.map { try $0.bulletins(for: test.device.deviceID, above: 0) }
    #expect(answers.allSatisfy { $0 == answers[0] })
    let ended = try answers[0].map { try $0.says() }.filter { keys.contains($0.issuer) }
    #expect(ended.count == 3 && Set(ended.flatMap(\.ended)) == Set(keys))
    #expect(try test.list("listKeyOrders").allSatisfy { $0["ended"]?.number != nil && $0["bulletin"]?.number != nil })
    #expect(try test.list("listChanges").count { $0["action"]?.text == "device.end-key" } == 3)
    // Page by page, it is the same.
    let all = try test.list("listKeyOrders", query: [("device", hexadecimal(test.device.deviceID))])
    let page = try test.perform("listKeyOrders", query: [("limit", "2")])
    let next = try #require(page["next"]?.text)
    let rest = try test.perform("listKeyOrders", query: [("limit", "2"), ("after", next)])
    #expect(try #require(page["items"]?.elements) + #require(rest["items"]?.elements) == all && rest["next"] == .null)
    #expect(throws: AdministrationFault.notFound) { try test.perform("listKeyOrders", query: [("after", "00-00")]) }
  }

  @Test(arguments: TestedDatabase.installed)
  func `operators are told before devices no longer trust the key that signs, at most once a minute, and daily`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let day: UInt64 = 86_400
    let new = try test.rotation(after: 60).new
    try test.setGroups(["north"])
    _ = try test.introduce(new.id, until: 100 * day, group: "north")
    _ = try test.introduce(new.id, until: 50 * day)
    #expect(try test.fleet.endingTrust() == nil, "the old key signs")
    test.wait(seconds: 60)
    let first = try #require(try test.fleet.endingTrust())
    #expect(
      first.key == new.id && first.until == TestFleet.now + 50 * day && first.first == "front door" && first.count == 1)
    #expect(try test.fleet.endingTrust() == nil)
    test.wait(seconds: 40 * day - 60)
    #expect(try test.fleet.endingTrust()?.count == 2)
    test.wait(seconds: day - 1)
    #expect(try test.fleet.endingTrust() == nil)
    test.wait(seconds: 1)
    #expect(try test.fleet.endingTrust()?.count == 2)
    _ = try test.end(new.id, withoutSuccessor: true)
    #expect(try test.fleet.endingTrust() == nil)
    test.wait(seconds: 60)
    #expect(try test.fleet.endingTrust()?.first == "north")
    _ = try test.rotation(after: 0)
    #expect(try test.fleet.endingTrust() == nil, "the next key was not introduced")
  }

  @Test func `operators are told again of an end that was put off and moved back`() throws {
    let test = try TestFleet(.sqlite)
    let (old, new) = try test.rotation(after: 60)
    let end: UInt64 = 20 * 86_400
    _ = try test.introduce(new.id, until: end)
    test.wait(seconds: 60)
    let told = try #require(try test.fleet.endingTrust())
    _ = try test.introduce(new.id, until: 10 * end, by: old.id)
    #expect(try test.fleet.endingTrust() == nil)
    _ = try test.introduce(new.id, until: end, by: old.id)
    #expect(try test.fleet.endingTrust() == nil, "within a minute of the first time")
    test.wait(seconds: 60)
    #expect(try test.fleet.endingTrust() == told)
  }
}
