import HoldfastCore
import HoldfastOpenSSL
import HoldfastLinux
import HoldfastStorage
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct RecordsTests {
  let test: TestAuthenticator

  init() throws {
    test = try TestAuthenticator()
  }

  @Test func `what was stored is there for the next process, but for the secret`() throws {
    let deviceID = DeviceID([UInt8](repeating: 7, count: 16).span)
    let secret = rfcSecret
    let credential = Credential(
      issuer: "Example", user: "alice", method: .totp, nextCounter: 0, secret: SecretBytes(copying: secret.span))
    let new = NewRecord(
      index: 3, purpose: .otp, credential: credential, deviceID: deviceID, lookAheadWindow: 10, sealFieldByteLimit: 64)
    try test.add([new], protection: pin("1357"))
    let record = try test.again().record(purpose: .otp)
    #expect(record.user == "alice" && record.index == 3 && record.issuer == "Example" && record.deviceID == deviceID)
    #expect(record.method == .totp && record.protection == .pin && record.lookAheadWindow == 10)
    #expect(record.sealFieldByteLimit == 64 && record.isConfirmed && record.change == .none)
    #expect(try test.place.mode("a") == 0o700)
    #expect(try test.place.mode("a/authenticator.sqlite") == 0o600)
    #expect(try test.place.contents("a/authenticator.sqlite")[68..<72].elementsEqual("HfAu".utf8))
  }

  @Test func `a record of the same user and index is not replaced, and then none is stored`() throws {
    try test.add(NewRecord())
    #expect(fault { try test.add(NewRecord("alice", 2), NewRecord("alice", 1)) } == .exists)
    #expect(try test.authenticator.records().count == 1)
    try test.add(NewRecord("alice", 1, next: 9), replacing: true)
    #expect(try test.authenticator.records().map(\.nextCounter) == [9])
  }

  @Test func `an activation that was never confirmed gives no code, and may be done again`() throws {
    try test.add(NewRecord(), isConfirmed: false)
    #expect(fault { _ = try test.code() } == .notConfirmed)
    try test.add(NewRecord(), isConfirmed: false)
    try test.authenticator.confirmActivation(user: "alice")
    #expect(try test.code() == "755224")
    #expect(fault { try test.add(NewRecord(), isConfirmed: false) } == .exists)
    #expect(fault { try test.authenticator.confirmActivation(user: "bob") } == .unknownRecord)
  }

  @Test func `what cannot be a record is refused`() throws {
    #expect(fault { try test.add(NewRecord("")) } == .badUser)
    #expect(fault { try test.add(NewRecord(String(repeating: "é", count: 17))) } == .badUser)
    #expect(fault { try test.add(NewRecord("a\u{202e}b")) } == .badUser)
    #expect(fault { try test.add(NewRecord("a\nb")) } == .badUser)
    #expect(fault { try test.add(NewRecord("alice", 0)) } == .badIndex)
    #expect(fault { try test.add(NewRecord("alice", 9)) } == .badIndex)
    #expect(fault { try test.add(NewRecord(secret: [])) } == .badRecord)
    #expect(fault { try test.add(NewRecord(secret: [UInt8](repeating: 1, count: 129))) } == .badRecord)
    #expect(fault { try test.add(NewRecord(next: 1 << 53)) } == .badRecord)
    #expect(fault { try test.add([NewRecord()], protection: pin("1234")) } == .weakPIN(.run))
  }

  @Test(
    arguments: [
      (.seal, .hotp(.sha1, .six), false), (.host, .totp, false), (.otp, .usualSeal, true), (.seal, .usualSeal, true),
      (.seal, .ocra("OCRA-1:HOTP-SHA256-8:C-QH64"), true), (.seal, .ocra("OCRA-1:HOTP-SHA256-8:QH64"), true),
      (.seal, .ocra("OCRA-1:HOTP-SHA256-8:QH40"), false), (.seal, .ocra("OCRA-1:HOTP-SHA256-8:QN64"), false),
      (.seal, .ocra("OCRA-1:HOTP-SHA256-0:QH64"), false), (.otp, .ocra("OCRA-1:HOTP-SHA1-6:QN08-PSHA1"), false),
      (.otp, .ocra("OCRA-1:HOTP-SHA1-6:QN08-S064"), false), (.host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"), true),
      (.host, .ocra("OCRA-1:HOTP-SHA256-8:C-QH16"), false),
    ] as [(RecordPurpose, CodeMethod, Bool)])
  func `a method serves its purpose or is refused`(purpose: RecordPurpose, method: CodeMethod, isSuitable: Bool) {
    #expect(fault { try test.add(NewRecord("alice", 1, purpose, method)) } == (isSuitable ? nil : .unsuitableMethod))
  }

  @Test func `a user and an index may be left out where there is one`() throws {
    #expect(fault { _ = try test.code() } == .noRecords)
    try test.add(NewRecord("alice", 1), NewRecord("alice", 2, .seal, .usualSeal))
    #expect(try test.code() == "755224")
    #expect(fault { _ = try test.code("bob") } == .unknownRecord)
    #expect(fault { _ = try test.code("alice", index: 2) } == .unknownRecord)
    try test.add(NewRecord("alice", 3))
    #expect(fault { _ = try test.code() } == .severalRecords)
    #expect(try test.code(index: 3) == "755224")
    try test.add(NewRecord("bob", 1))
    #expect(fault { _ = try test.code() } == .severalUsers)
    #expect(fault { _ = try test.code(index: 1) } == .severalUsers)
    #expect(try test.code("bob") == "755224")
  }

  @Test func `removed records are gone, and their secrets with them`() throws {
    try test.add(NewRecord(secret: randomSecret), NewRecord("alice", 2), NewRecord("bob", 1))
    #expect(test.fileContents().contains(bytes: randomSecret))
    #expect(try test.authenticator.remove(user: "alice", index: 1) == 1)
    #expect(!test.fileContents().contains(bytes: randomSecret))
    #expect(fault { try test.authenticator.remove(user: "alice", index: 1) } == .unknownRecord)
    #expect(try test.authenticator.remove(user: "alice") == 1)
    #expect(try test.authenticator.records().map(\.user) == ["bob"])
  }

  @Test func `the next free index is the lowest`() throws {
    try test.add(NewRecord("alice", 1), NewRecord("alice", 3))
    #expect(try test.authenticator.freeIndex(user: "alice") == 2)
    let planned = [NewRecord("alice", 2), NewRecord("bob", 4)]
    #expect(try test.authenticator.freeIndex(user: "alice", besides: planned) == 4)
    for index in [2, 4, 5, 6, 7, 8] { try test.add(NewRecord("alice", index)) }
    #expect(fault { _ = try test.authenticator.freeIndex(user: "alice") } == .exists)
  }

  @Test func `a device's word moves counters on, and never back`() throws {
    try test.add(
      NewRecord("alice", 1, window: 2), NewRecord("alice", 2, .seal, .ocra("OCRA-1:HOTP-SHA256-8:C-QH64")),
      NewRecord("alice", 3, .otp, .totp))
    try test.authenticator.synchronise(user: "alice", offsetSeconds: -7, otpNext: 5, sealNext: 9, now: testTime)
    var records = try test.authenticator.records()
    #expect(records.map(\.nextCounter) == [5, 9, 0])
    #expect(records.map(\.acknowledgedCounter) == [5, 9, 0])
    #expect(records.map(\.clockOffsetSeconds) == [0, 0, -7])
    #expect(records.allSatisfy { $0.lastSynchronised == testTime })
    try test.authenticator.synchronise(user: "alice", offsetSeconds: nil, otpNext: 3, sealNext: nil, now: testTime + 1)
    records = try test.authenticator.records()
    #expect(records.map(\.nextCounter) == [5, 9, 0])
    #expect(records.map(\.clockOffsetSeconds) == [0, 0, -7])
    #expect(
      fault {
        try test.authenticator.synchronise(
          user: "alice", offsetSeconds: 1 << 32, otpNext: nil, sealNext: nil, now: testTime)
      } == .badRecord)
    #expect(
      fault {
        try test.authenticator.synchronise(user: "bob", offsetSeconds: 0, otpNext: nil, sealNext: nil, now: testTime)
      } == .unknownRecord)
  }

  @Test func `what a device says is taken for its own records, and not for another device's of the same name`() throws {
    let ours = DeviceID([UInt8](repeating: 7, count: 16).span)
    let theirs = DeviceID([UInt8](repeating: 8, count: 16).span)
    let bytes = randomSecret
    let secret = SecretBytes(copying: bytes.span)
    let credential = Credential(user: "alice", method: .hotp(.sha1, .six), secret: secret)
    try test.add(
      NewRecord(index: 1, purpose: .otp, credential: credential, deviceID: ours), NewRecord("alice", 2),
      isConfirmed: false)
    func confirmed() throws -> [Bool] { try test.authenticator.records().map(\.isConfirmed) }
    try test.authenticator.synchronise(
      user: "alice", deviceID: theirs, offsetSeconds: nil, otpNext: 9, sealNext: nil, now: testTime)
    try test.authenticator.confirmActivation(user: "alice", deviceID: theirs)
    #expect(try test.authenticator.records().map(\.nextCounter) == [0, 9])
    #expect(try confirmed() == [false, true])
    try test.authenticator.synchronise(
      user: "alice", deviceID: ours, offsetSeconds: nil, otpNext: 5, sealNext: nil, now: testTime)
    try test.authenticator.confirmActivation(user: "alice", deviceID: ours)
    #expect(try test.authenticator.records().map(\.nextCounter) == [5, 9])
    #expect(try confirmed() == [true, true])
    try test.authenticator.remove(user: "alice", index: 2)
    #expect(
      fault {
        try test.authenticator.synchronise(
          user: "alice", deviceID: theirs, offsetSeconds: nil, otpNext: 9, sealNext: nil, now: testTime)
      } == .unknownRecord)
    #expect(fault { try test.authenticator.confirmActivation(user: "alice", deviceID: theirs) } == .unknownRecord)
  }

  @Test func `a folder without an authenticator, of somebody else, or open to others is told apart`() throws {
    let place = try TemporaryFolder()
    #expect(
      fault { _ = try AuthenticatorFolder.open(at: place.file("none")) }
        == .folder(FileError(.notFound, at: place.file("none"))))
    #expect(fault { _ = try AuthenticatorFolder.open(at: place.path) } == .missing)
    #expect(
      fault { _ = try AuthenticatorFolder.create(at: place.file("none/none")) }
        == .folder(FileError(.notFound, at: place.file("none/none"))))
    try place.makeFile("file", [1])
    let notFolder = AuthenticatorFault.folder(FileError(.notDirectory, at: place.file("file")))
    #expect(fault { _ = try AuthenticatorFolder.open(at: place.file("file")) } == notFolder)
    #expect(fault { _ = try AuthenticatorFolder.create(at: place.file("file")) } == notFolder)
    try place.setMode("", 0o755)
    try place.makeFile(AuthenticatorFolder.fileName)
    let isOpen = AuthenticatorFault.folder(FileError(.tooOpen(mode: 0o755), at: place.path))
    #expect(fault { _ = try AuthenticatorFolder.open(at: place.path) } == isOpen)
    try place.setMode("", 0o700)
    #expect(try AuthenticatorFolder.open(at: place.path).records().isEmpty)
    try place.setMode(AuthenticatorFolder.fileName, 0o644)
    #expect(fault { _ = try AuthenticatorFolder.open(at: place.path) } == .tooOpen)
  }

  @Test func `another application's file, a later version's and a damaged one are told apart`() throws {
    let place = try TemporaryFolder()
    let path = place.file(AuthenticatorFolder.fileName)
    do {
      let foreign = try Database(path: path, applicationID: 99, schema: ["CREATE TABLE t (x)"])
      try foreign.close()
    }
    #expect(fault { _ = try AuthenticatorFolder.open(at: place.path) } == .foreign)
    let later = try TemporaryFolder()
    let schema = AuthenticatorTables.schema + ["CREATE TABLE later (x)"]
    _ = try Database(
      path: later.file(AuthenticatorFolder.fileName), applicationID: AuthenticatorTables.applicationID, schema: schema)
    #expect(fault { _ = try AuthenticatorFolder.open(at: later.path) } == .newerVersion)
    let damaged = try TemporaryFolder()
    try damaged.makeFile(AuthenticatorFolder.fileName, [UInt8](repeating: 0x5a, count: 8192))
    #expect(fault { _ = try AuthenticatorFolder.open(at: damaged.path) } == .corrupt)
  }

  @Test(
    arguments: [
      "UPDATE records SET purpose = 9", "UPDATE records SET change = 300", "UPDATE records SET next_counter = -1",
      "UPDATE records SET clock_offset = 9223372036854775807", "UPDATE records SET next_counter = 9223372036854775807",
      "UPDATE records SET method = x'00'",
      "UPDATE records SET protection = x'8501500000000000000000000000000000000018400801'",
      "UPDATE records SET secret = x''", "UPDATE records SET device_id = x'00'", "UPDATE records SET number = 256",
      "UPDATE records SET seal_field_limit = 65", "UPDATE records SET demand = 3", "UPDATE records SET demand = 256",
      "UPDATE records SET number = 9",
    ] as [StaticString])
  func `a row that nothing here would write is a damaged file, and not a crash`(sql: StaticString) throws {
    try test.add(NewRecord())
    try test.authenticator.tables.database.run(sql)
    #expect(fault { _ = try test.again().records() } == .corrupt)
  }

  @Test func `a file that another process holds is busy after a while`() throws {
    try test.add(NewRecord())
    let other = try test.again()
    try test.authenticator.tables.database.run("PRAGMA busy_timeout = 1")
    try other.tables.transaction { () throws(AuthenticatorFault) in
      #expect(fault { _ = try test.code() } == .busy)
    }
    #expect(try test.code() == "755224")
  }
}
