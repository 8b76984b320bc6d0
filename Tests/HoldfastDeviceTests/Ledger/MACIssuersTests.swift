import HoldfastCore
import HoldfastOpenSSL
import HoldfastLinux
import HoldfastStorage
import TestSupport
import Testing

import HoldfastDevice

/// The policy of `device init`, which also allows tokens under a MAC.
let withMAC: DevicePolicy = {
  var policy = DevicePolicy.forSimulatedLock
  policy.acceptsMAC = true
  return policy
}()

/// Issuers that share a key with the device.
@Suite struct MACIssuersTests {
  private let macKey = [UInt8](1...32)
  private let device: TestDevice
  private let sharing: TestIssuer

  init() throws {
    device = try TestDevice(policy: withMAC)
    sharing = try TestIssuer(sharing: macKey)
    try device.ledger.trust(sharing.trustedKey(), realClock: testTime)
  }

  @Test func `their tokens are accepted beside signed ones, and the ledger tells the two kinds apart`() throws {
    let connection = try device.connect()
    for issuer in [nil, sharing] {
      let prover = try device.prover(from: issuer)
      #expect(try connection.round(prover).status == .accepted)
      #expect(try connection.round(prover, flaws: .asReference).status == .accepted)
    }
    let algorithms = try device.ledger.issuers().map { ($0.keyID, $0.algorithm) }
    #expect(try algorithms.contains { $0 == (try sharing.keyID(), .hs256) })
    #expect(try algorithms.contains { $0 == (try device.issuer.keyID(), .es256) })
    try device.reopenLedger()
    #expect(try device.connect().round(try device.prover(from: sharing)).status == .accepted)
  }

  @Test func `what the ledger shows of one does not have the key in it`() throws {
    let shown = "\(try device.ledger.issuers())"
    #expect(!shown.contains("1, 2, 3, 4"))
    let fields = Mirror(reflecting: try device.ledger.issuers()[0]).children.compactMap(\.label)
    #expect(fields == ["keyID", "algorithm", "generationFloor", "terms"])
  }

  @Test func `a token that another device's key made is refused`() throws {
    let others = try TestIssuer(sharing: [UInt8](repeating: 7, count: 32))
    #expect(try device.connect().round(try device.prover(from: others)).status == .tokenInvalid)
  }

  @Test func `without the policy's word none counts, from the next round on`() throws {
    let connection = try device.connect()
    let prover = try device.prover(from: sharing)
    #expect(try connection.round(prover).status == .accepted)
    device.policy.acceptsMAC = false
    #expect(try connection.round(prover, flaws: .asReference).status == .tokenInvalid)
    #expect(try connection.round(prover).status == .tokenInvalid)
    #expect(try connection.round(try device.prover()).status == .accepted)
    device.policy.acceptsMAC = true
    #expect(try connection.round(prover, flaws: .asReference).status == .accepted)
  }

  @Test func `trust in one ends like trust in any, and its key is nowhere in the ledger's files afterwards`() throws {
    let connection = try device.connect()
    let prover = try device.prover(from: sharing)
    #expect(try connection.round(prover).status == .accepted)
    #expect(try device.ledger.removeTrust(try sharing.keyID(), realClock: testTime))
    #expect(try connection.round(prover, flaws: .asReference).status == .tokenInvalid)
    #expect(try connection.round(prover).status == .tokenInvalid)
    try device.ledger.checkpoint()
    let file = try Files.readFile(at: DeviceFile.ledger.path(in: device.folder.path), limit: 1 << 24)
    #expect(file.firstRange(of: macKey) == nil)
    #expect(file.firstRange(of: Array("issuers".utf8)) != nil)
  }

  @Test func `generations, uses and revocation are one's own`() throws {
    let connection = try device.connect()
    let newer = try device.prover(from: sharing) { ($0.generation, $0.maximumUses) = (5, 1) }
    #expect(try connection.round(newer).status == .accepted)
    #expect(try connection.round(newer).status == .usesExhausted)
    #expect(try connection.round(try device.prover(from: sharing)).status == .tokenRevoked)
    #expect(try connection.round(try device.prover()).status == .accepted)
    let floors = try device.ledger.issuers().map { ($0.algorithm, $0.generationFloor) }
    #expect(floors.contains { $0 == (.hs256, 5) } && floors.contains { $0 == (.es256, 1) })
  }

  @Test func `the same key is trusted once, and its row has to be what it says`() throws {
    #expect(try !device.ledger.trust(sharing.trustedKey(), realClock: testTime))
    let connection = try device.connect()
    let prover = try device.prover(from: sharing)
    for sql: StaticString in [
      "UPDATE issuers SET algorithm = 'none' WHERE algorithm = 'HS256'",
      "UPDATE issuers SET algorithm = 'ES256' WHERE algorithm = 'none'",
      "UPDATE issuers SET algorithm = 'HS256', key = zeroblob(31) WHERE length(key) = 32",
      "UPDATE issuers SET key = zeroblob(32) WHERE length(key) = 31",
    ] {
      try device.tamper(sql)
      #expect(try connection.round(prover).status == .tokenInvalid, "\(sql)")
    }
  }

  @Test func `a ledger from before there were any keeps its issuers, who sign`() throws {
    let place = try TemporaryFolder()
    let path = place.file("ledger.sqlite")
    let old = try Database(
      path: path, applicationID: LedgerTables.applicationID, schema: Array(LedgerTables.schema.prefix(3)))
    try old.run(
      """
      INSERT INTO state (id, device_id, clock_floor, forgotten_through, boot_count, kept_count, audit_count, audit_head)
      VALUES (1, x'000102030405060708090a0b0c0d0e0f', 1700000000, 5, 6, 0, 0, zeroblob(32))
      """)
    try old.run(
      "INSERT INTO issuers VALUES (?, ?)", .copying(try device.issuer.keyID().bytes),
      .copying(device.issuer.point.bytes))
    try old.close()
    let ledger = try Ledger(path: path, limits: LedgerLimits())
    #expect(try ledger.issuers().map(\.algorithm) == [.es256])
    #expect(try !ledger.trust(device.issuer.trustedKey(), realClock: testTime))
    #expect(try ledger.trust(sharing.trustedKey(), realClock: testTime))
    #expect(try ledger.issuers().count == 2)
  }
}
