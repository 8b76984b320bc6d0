import HoldfastCore
import HoldfastOpenSSL
import Synchronization
import TestSupport
import Testing

import HoldfastAuthenticator

/// An authenticator whose state an app keeps itself.
@Suite struct StoreTests {
  private let store = MemoryStore()

  @Test func `an app stores each change itself, and learns of it by the stamp`() throws {
    let authenticator = try opened()
    #expect(try authenticator.records().isEmpty && authenticator.stamp() == nil && store.writeCount == 0)
    try add(NewRecord(), to: authenticator)
    let added = try #require(try authenticator.stamp())
    #expect(added.changeCount == 1 && added.id.count == 16)
    #expect(try [code(authenticator), code(authenticator)] == ["755224", "287082"])
    #expect(try authenticator.stamp()?.changeCount == 3 && store.writeCount == 3)
    // A call that only reads writes nothing.
    _ = try (authenticator.records(), authenticator.users(), authenticator.devices())
    #expect(throws: AuthenticatorFault.exists) { try add(NewRecord(), to: authenticator) }
    #expect(try authenticator.stamp()?.changeCount == 3 && store.writeCount == 3)
    let again = try opened(notBefore: try authenticator.stamp())
    #expect(try again.records() == authenticator.records())
    #expect(try code(again) == "359152")
    #expect(try code(authenticator) == "969429", "the other has used up a code meanwhile")
  }

  @Test func `users, devices and what their records need are listed in order`() throws {
    let authenticator = try opened()
    let device = DeviceID([UInt8](repeating: 9, count: 16).span)!
    for (user, index) in [("émile", 1), ("bob", 2), ("bob", 1), ("alice", 8)] {
      let record = NewRecord(user, index, secret: Array("\(user)\(index) random secret".utf8))
      let new = NewRecord(
        index: index, purpose: .otp, credential: record.credential, deviceID: user == "bob" ? device : nil)
      try add(new, to: authenticator)
    }
    #expect(try authenticator.users() == ["alice", "bob", "émile"])
    #expect(try authenticator.records().map { "\($0.user) \($0.index)" } == ["alice 8", "bob 1", "bob 2", "émile 1"])
    #expect(try authenticator.records(user: "bob").map(\.index) == [1, 2])
    #expect(try authenticator.devices() == [device] && authenticator.devices(of: "alice").isEmpty)
    try authenticator.remove(user: "bob", index: 1)
    #expect(try authenticator.records(user: "bob").map(\.index) == [2])
  }

  @Test func `a write that fails shows no code, and the next one continues`() throws {
    let authenticator = try opened()
    try add(NewRecord(), to: authenticator)
    for kind in MemoryStore.Failure.allCases {
      let shown = store.contents
      store.failNext(kind)
      #expect(throws: AuthenticatorFault.diskFull) { try code(authenticator) }
      #expect((store.contents == shown) == (kind == .before))
    }
    // The write that was reported as failed but was made has used up a counter.
    #expect(try code(authenticator) == "287082")
  }

  @Test func `a change of the PIN that fails at any write can be undone or made again`() throws {
    for kind in MemoryStore.Failure.allCases {
      for failing in 0..<4 {
        let store = MemoryStore()
        var random = TestRandom(state: 3)
        let authenticator = try Authenticator(store: store, cost: .test, random: &random)
        try authenticator.add([NewRecord()], protection: pin("1357"), random: &random)
        let record = try authenticator.record(purpose: .otp)
        store.failNext(kind, after: failing)
        let old = try pin("1357")
        let new = try pin("2468")
        var undo: [UInt8] = []
        let found = fault {
          let code = try authenticator.prepareChange(of: record, random: &random)
          undo = try code.withText { [UInt8]($0) }
          try authenticator.change(record, from: old, to: new, under: code, random: &random)
        }
        store.failNext(nil)
        #expect((found == nil) == (failing == 3))
        if try authenticator.records()[0].isInterrupted {
          try authenticator.undoChange(user: "alice", under: UndoCode(undo.span))
        }
        let isNew = try authenticator.records()[0].isChangeOpen
        #expect(try code(authenticator, with: pin(isNew ? "2468" : "1357")) == "755224", "\(kind) \(failing)")
      }
    }
  }

  @Test func `older bytes are noticed by whoever has seen newer ones, and by a stamp`() throws {
    let authenticator = try opened()
    try add(NewRecord(), to: authenticator)
    let before = try #require(store.contents)
    _ = try code(authenticator)
    let (after, stamp) = (store.contents, try authenticator.stamp())
    store.contents = before
    #expect(throws: AuthenticatorFault.rolledBack) { try code(authenticator) }
    #expect(throws: AuthenticatorFault.rolledBack) { try authenticator.records() }
    #expect(throws: AuthenticatorFault.rolledBack) { try opened(notBefore: stamp) }
    store.contents = nil
    #expect(throws: AuthenticatorFault.rolledBack) { try code(authenticator) }
    #expect(throws: AuthenticatorFault.rolledBack) { try opened(notBefore: stamp) }
    // Without a stamp nobody can know: docs/authenticator.md says so.
    store.contents = before
    #expect(try code(opened()) == "755224")
    // The copy has lived on: as many changes, and other bytes, are another history.
    store.contents = before
    try add(NewRecord("bob", secret: randomSecret), to: opened())
    #expect(throws: AuthenticatorFault.rolledBack) { try authenticator.records() }
    store.contents = after
    #expect(try code(authenticator) == "287082")
    #expect(try stamp?.changeCount == 2 && opened(notBefore: stamp).stamp()?.changeCount == 3)
  }

  @Test func `a stamp has an identity of 16 bytes`() {
    for count in [0, 15, 17] {
      #expect(AuthenticatorStamp(id: [UInt8](repeating: 1, count: count), changeCount: 1) == nil)
    }
    #expect(AuthenticatorStamp(id: [UInt8](repeating: 1, count: 16), changeCount: 1) != nil)
  }

  @Test func `with a record, only what waits in its place is removed, in a store and in a folder`() throws {
    let folder = try TestAuthenticator()
    for authenticator in [try opened(), folder.authenticator] {
      var random = TestRandom(state: 6)
      let places = [("alice", 1), ("alice", 2), ("bob", 1)]
      func records(_ name: String) -> [NewRecord] {
        places.map { NewRecord($0, $1, secret: Array("\(name) secret of \($0) \($1)".utf8)) }
      }
      try authenticator.add(records("old"), protection: .none, random: &random)
      #expect(try authenticator.store(records("new"), protection: .none, replacing: true, random: &random))
      try authenticator.remove(user: "alice", index: 1)
      #expect(try authenticator.waitingRecords(of: "alice").map(\.index) == [2])
      try authenticator.remove(user: "alice")
      #expect(try authenticator.waitingRecords(of: "alice").isEmpty)
      #expect(try authenticator.waitingRecords(of: "bob").map(\.index) == [1])
    }
  }

  @Test func `another authenticator's bytes are foreign to whoever knows the right ones`() throws {
    let authenticator = try opened()
    try add(NewRecord(), to: authenticator)
    let stamp = try authenticator.stamp()
    let other = MemoryStore()
    var random = TestRandom(state: 1234)
    try Authenticator(store: other, cost: .test, random: &random)
      .add([NewRecord("mallory", secret: randomSecret)], protection: .none, random: &random)
    store.contents = other.contents
    #expect(throws: AuthenticatorFault.foreign) { try authenticator.records() }
    #expect(throws: AuthenticatorFault.foreign) { try opened(notBefore: stamp) }
  }

  @Test func `bytes that nothing here would write are refused, and none is a crash`() throws {
    let authenticator = try opened()
    try add(NewRecord(), to: authenticator)
    try add(NewRecord("bob", secret: randomSecret), to: authenticator)
    let whole = try #require(store.contents)
    for count in 0..<whole.count {
      store.contents = Array(whole[..<count])
      #expect(throws: AuthenticatorFault.self) { try opened() }
    }
    for index in whole.indices {
      store.contents = whole
      store.contents?[index] ^= 0x10
      #expect(throws: AuthenticatorFault.self) { try opened() }
    }
    let long = [UInt8](repeating: 0x68, count: 1 << 23)
    let cases: [([UInt8], AuthenticatorFault)] = [
      (Array("something else".utf8), .foreign), ([], .corrupt), (whole + [0], .corrupt),
      (Array("hfauth02".utf8) + Array(whole[8...]), .newerVersion),
      (Array("hfauthxx".utf8) + Array(whole[8...]), .corrupt), (long, .foreign),
      (Array("hfauth01".utf8) + long, .corrupt),
    ]
    for (bytes, fault) in cases {
      store.contents = bytes
      #expect(throws: fault) { try opened() }
    }
  }

  /// The hash is right, and what is inside is not.
  @Test func `records out of order, twice, or too many are damage`() throws {
    var random = TestRandom(state: 5)
    let source = try Authenticator(store: store, cost: .test, random: &random)
    for (user, secret) in [("alice", rfcSecret), ("bob", randomSecret)] {
      try source.add([NewRecord(user, secret: secret)], protection: .none, random: &random)
    }
    let records = try source.tables.records()
    let bad: [([StoredRecord], [StoredRecord], UInt64)] = [
      ([records[1], records[0]], [], 3), ([records[0], records[0]], [], 3), (records, [records[0], records[0]], 3),
      (records, [], 0),
    ]
    for (records, replacements, changeCount) in bad {
      store.contents = try encodedState(records, replacements, changeCount: changeCount)
      #expect(throws: AuthenticatorFault.corrupt) { try opened() }
    }
    store.contents = try encodedState(records, [], changeCount: maximumInteger)
    #expect(throws: AuthenticatorFault.counterExhausted) { try code(opened(), of: "alice") }
  }

  /// Records of users with the names 10000, 10001 and so on.
  private func records(_ count: Int) throws -> [StoredRecord] {
    store.contents = nil
    try add(NewRecord(), to: opened())
    var random = TestRandom(state: 5)
    let source = try Authenticator(store: store, cost: .test, random: &random)
    var template: [UInt8] = []
    try #require(try source.tables.records().first).encode(into: &template)
    let name = try #require(template.firstRange(of: Array("alice".utf8)))
    return try (10_000..<10_000 + count).map { number in
      var bytes = template
      bytes.replaceSubrange(name, with: Array("\(number)".utf8))
      var reader = CBORReader(bytes.span)
      return try StoredRecord(&reader)
    }
  }

  @Test func `a state has 8,192 records and not one more, read or written`() throws {
    store.contents = try encodedState(records(8193), [], changeCount: 3)
    #expect(throws: AuthenticatorFault.corrupt) { try opened() }
    store.contents = try encodedState(records(8192), [], changeCount: 3)
    let before = store.contents
    let authenticator = try opened()
    #expect(try authenticator.records().count == 8192)
    #expect(throws: AuthenticatorFault.diskFull) { try add(NewRecord("zoe"), to: authenticator) }
    #expect(store.contents == before)
  }

  @Test func `a state has 4 MiB and not a byte more, read or written`() throws {
    var records = try records(8000)
    for index in records.indices { records[index].undo = [UInt8](repeating: 7, count: 400) }
    var left = try (1 << 22) - encodedState(records, [], changeCount: 3).count
    for index in records.indices where left > 0 {
      let more = min(left, 112)
      records[index].undo = [UInt8](repeating: 7, count: 400 + more)
      left -= more
    }
    try #require(left == 0)
    store.contents = try encodedState(records, [], changeCount: 3)
    #expect(try code(opened(), of: "10000") == "755224")
    #expect(store.contents?.count == 1 << 22)
    // The next number of changes takes another byte.
    store.contents = try encodedState(records, [], changeCount: 23)
    let before = store.contents
    #expect(throws: AuthenticatorFault.diskFull) { try code(opened(), of: "10000") }
    #expect(store.contents == before)
    store.contents = try encodedState(records, [], changeCount: 24)
    #expect(throws: AuthenticatorFault.corrupt) { try opened() }
  }

  /// The other process uses up a code after each of the reads of the first one, in turn.
  @Test(arguments: 0..<3) func `two processes at one store never show one code`(reads: Int) throws {
    let (one, other) = (try opened(), try opened())
    try add(NewRecord(), to: one)
    var shown: [String] = []
    store.run(afterReads: reads) { shown += [(try? code(other)) ?? "none"] }
    let own = try? code(one)
    #expect((own == nil) == (reads == 2), "what was computed from an older state is not shown")
    if let own { shown.append(own) }
    shown.append(try code(one))
    #expect(shown == Array(["755224", "287082", "359152"].prefix(shown.count)))
  }

  private func opened(notBefore stamp: AuthenticatorStamp? = nil) throws -> Authenticator {
    var random = TestRandom(state: 77)
    return try Authenticator(store: store, notBefore: stamp, cost: .test, random: &random)
  }

  private func add(_ record: NewRecord, to authenticator: Authenticator) throws {
    var random = TestRandom(state: 1)
    try authenticator.add([record], protection: .none, random: &random)
  }

  private func code(_ authenticator: Authenticator, of user: String? = nil) throws -> String {
    try code(authenticator, of: user, with: .none)
  }

  private func code(
    _ authenticator: Authenticator, of user: String? = nil, with protector: borrowing ProtectionSecret
  ) throws -> String {
    let record = try authenticator.record(user: user, purpose: .otp)
    return try authenticator.code(for: record, with: protector, clock: TestClock()).text
  }

  private func encodedState(
    _ records: [StoredRecord], _ replacements: [StoredRecord], changeCount: UInt64
  ) throws -> [UInt8] {
    var bytes = Array("hfauth01".utf8)
    bytes.appendCBOR(array: 4)
    bytes.appendCBOR(bytes: [UInt8](repeating: 1, count: 16).span)
    bytes.appendCBOR(unsigned: changeCount)
    for list in [records, replacements] {
      bytes.appendCBOR(array: list.count)
      for record in list { record.encode(into: &bytes) }
    }
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 authenticator state")
    hash.append(bytes.span)
    let digest: Digest = try hash.finish()
    return bytes + (0..<8).map { digest[$0] }
  }
}

/// A store in memory, whose writes can fail.
private final class MemoryStore: AuthenticatorStore, @unchecked Sendable {
  /// A write that throws, before or after the bytes were stored.
  enum Failure: CaseIterable { case before, after }

  var contents: [UInt8]?
  var writeCount = 0
  private var intervention: (readsLeft: Int, body: () -> Void)?
  private var failure: Failure?
  private var writesBeforeFailure = 0

  func failNext(_ kind: Failure?, after count: Int = 0) { (failure, writesBeforeFailure) = (kind, count) }

  /// Runs `body` once, right after so many reads and another one.
  func run(afterReads count: Int, _ body: @escaping () -> Void) { intervention = (count, body) }

  func load() throws(AuthenticatorFault) -> [UInt8]? {
    let found = contents
    guard let (readsLeft, body) = intervention else { return found }
    intervention = readsLeft > 0 ? (readsLeft - 1, body) : nil
    if readsLeft == 0 { body() }
    return found
  }

  func replace(_ old: [UInt8]?, with new: [UInt8]) throws(AuthenticatorFault) {
    guard contents == old else { throw .busy }
    let fails = failure != nil && writesBeforeFailure == 0
    writesBeforeFailure -= 1
    if fails, failure == .before {
      failure = nil
      throw .diskFull
    }
    contents = new
    writeCount += 1
    if fails {
      failure = nil
      throw .diskFull
    }
  }
}
