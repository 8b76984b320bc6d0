import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastAuthenticator

/// Records that need a key or their host in addition to the PIN, and what a thief can do who lacks one of them.
@Suite struct SeveralMasksTests {
  private static let records = [
    NewRecord(secret: randomSecret), NewRecord("alice", 2, .seal, .usualSeal, secret: randomSecret.reversed()),
    NewRecord("alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"), secret: rfcSecret.reversed()),
  ]

  /// The inputs; nil leaves one out.
  private func inputs(_ digits: String? = nil, key: UInt8? = nil, host: UInt8? = nil) throws -> ProtectionSecret {
    var pin: PIN?
    if let digits { pin = try PIN(digits) }
    return ProtectionSecret(pin: pin, key: external(key), host: external(host))
  }

  private func external(_ byte: UInt8?) -> ExternalKey? {
    guard let byte else { return nil }
    return ExternalKey([UInt8](repeating: byte, count: 32).span)
  }

  private func stolen(_ digits: String? = "1357", key: UInt8? = 1, host: UInt8? = 2) throws -> TestAuthenticator {
    let test = try TestAuthenticator()
    try test.add(Self.records, protection: inputs(digits, key: key, host: host))
    return test
  }

  private func change(
    _ test: TestAuthenticator, from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret,
    seed: UInt64 = 77
  ) throws -> UndoCode {
    var random = TestRandom(state: seed)
    let record = try test.authenticator.record(user: "alice", purpose: .otp)
    let code = try test.authenticator.prepareChange(of: record, random: &random)
    try test.authenticator.change(record, from: old, to: new, under: code, random: &random)
    return code
  }

  /// The right code at a counter, from the secret itself.
  private func right(_ counter: UInt64) throws -> String {
    var cryptography = OpenSSLCryptography()
    let secret = randomSecret
    return try HOTP.code(counter: counter, key: secret.span, hash: .sha1, length: .six, using: &cryptography)
      .description
  }

  private func blinded(_ test: TestAuthenticator, _ index: Int = 1) throws -> [UInt8] {
    let secret = try #require(try test.authenticator.stored("alice", index).secret)
    return secret.bytes.withBytes { [UInt8]($0) }
  }

  @Test func `a secret that the PIN at hand opens is not stored again with a key or host in addition`() throws {
    let test = try stolen(key: nil, host: nil)
    let copies = [NewRecord("bob", 1, .otp, secret: randomSecret)]
    #expect(throws: AuthenticatorFault.secretTwice) { try test.add(copies, protection: inputs("1357", key: 1)) }
    #expect(throws: AuthenticatorFault.secretTwice) { try test.add(copies, protection: inputs("1357", host: 2)) }
  }

  @Test func `a record of another host does not keep new ones out`() throws {
    let test = try stolen(key: nil, host: 2)
    try test.add([NewRecord("bob", 1, .otp, secret: rfcSecret)], protection: inputs("1357", host: 3))
    #expect(try test.authenticator.records(user: "bob").count == 1)
  }

  @Test func `a stolen authenticator with both masks is tried, and neither the PIN nor the key can be told`() throws {
    let test = try stolen(host: nil)
    let record = try test.authenticator.record(purpose: .otp)
    let stored = try test.authenticator.stored("alice", 1).usableSecret()
    #expect(record.protection == [.pin, .key])
    var secrets: Set<[UInt8]> = []
    var codes: Set<String> = []
    func keep(_ protector: borrowing ProtectionSecret) throws {
      secrets.insert(try stored.unblinded(with: protector).withBytes { [UInt8]($0) })
      codes.insert(try test.authenticator.code(for: record, with: protector, clock: TestClock()).text)
    }
    // The thief has the key, and tries PINs; then has the PIN, and tries keys.
    for number in stride(from: 0, to: 10_000, by: 50) {
      try keep(inputs(String(String(10_000 + number).dropFirst()), key: 1))
    }
    for byte in UInt8(3)...102 { try keep(inputs("1357", key: byte)) }
    #expect(secrets.count == 300 && codes.count > 290)
    #expect(codes.allSatisfy { $0.utf8.count == 6 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    // For every guess, even of both, there is a secret that explains the file: nothing in it speaks against the guess.
    let explained = try stored.unblinded(with: inputs("8642", key: 9))
    let again = try BlindedSecret(blinding: explained, with: inputs("8642", key: 9), as: stored.protection)
    #expect(again.isSame(as: stored))
  }

  @Test func `files of other PINs and keys and the same chance differ in the blinded secrets alone`() throws {
    let left = try stolen("1357", key: 1)
    for right in [try stolen("2468", key: 1), try stolen("1357", key: 3)] {
      for index in 1...2 {
        let (one, other) = (
          try left.authenticator.stored("alice", index), try right.authenticator.stored("alice", index)
        )
        #expect(one.secret?.protection == other.secret?.protection)
        #expect(one.record == other.record && one.undo == nil && other.undo == nil)
        #expect(try blinded(left, index) != blinded(right, index))
      }
    }
  }

  @Test func `what tells another host depends on neither PIN nor key nor secret, and gives no code there`() throws {
    let test = try stolen()
    #expect(fault { _ = try test.code(with: inputs("1357", key: 1, host: 3)) } == .otherHost)
    #expect(try test.authenticator.record(purpose: .otp).nextCounter == 0)
    #expect(try test.code(with: inputs("1357", key: 1, host: 2)) == right(0))
    let (other, third) = (try stolen("2468", key: 9), try TestAuthenticator())
    try third.add([NewRecord(secret: rfcSecret)], protection: inputs("1357", key: 1, host: 2))
    let hosts = try [test, other, third].map { try $0.authenticator.stored("alice", 1).secret?.protection.host }
    #expect(hosts[0] != nil && hosts[0] == hosts[1] && hosts[1] == hosts[2])
    // Without the host's secret, every PIN still explains the file, and each with another mask of the host.
    var masked: Set<[UInt8]> = []
    let stored = try test.authenticator.stored("alice", 1).usableSecret()
    for digits in ["1357", "2468", "8642"] {
      let part = try BlindedSecret(blinding: stored.bytes, with: pin(digits), as: stored.protection.only(.pin))
      masked.insert(part.bytes.withBytes { [UInt8]($0) })
    }
    #expect(masked.count == 3)
  }

  @Test(arguments: [[], .pin, .key, .host, [.pin, .key], [.pin, .host], [.key, .host]] as [ProtectionInputs])
  func `a code needs all inputs of the record`(given: ProtectionInputs) throws {
    let test = try stolen()
    let some = try inputs(
      given.contains(.pin) ? "1357" : nil, key: given.contains(.key) ? 1 : nil, host: given.contains(.host) ? 2 : nil)
    #expect(fault { _ = try test.code(with: some) } == .protectionMismatch([.pin, .key, .host]))
    #expect(try test.authenticator.record(purpose: .otp).nextCounter == 0)
  }

  @Test func `a key and the host are added without the PIN, and serve all records that share it`() throws {
    let test = try stolen(key: nil, host: nil)
    let before = [try blinded(test, 1), try blinded(test, 2)]
    _ = try change(test, from: .none, to: inputs(key: 1, host: 2))
    let all = [.pin, .key, .host] as ProtectionInputs
    #expect(try test.authenticator.records().map(\.protection) == [all, all, []])
    #expect(try test.code(with: inputs("1357", key: 1, host: 2)) == right(0))
    #expect(try test.code(with: inputs("1357", key: 4, host: 2)) != right(1))
    let contents = test.fileContents()
    for old in before { #expect(!contents.contains(bytes: old)) }
    try test.authenticator.confirmProtection(user: "alice")
    #expect(fault { _ = try change(test, from: .none, to: inputs(key: 5)) } == .protectionMismatch(all))
    _ = try change(test, from: inputs(key: 1), to: inputs(key: 5))
    #expect(try test.code(with: inputs("1357", key: 5, host: 2)) == right(2))
    try test.authenticator.confirmProtection(user: "alice")
    _ = try change(test, from: inputs(key: 5, host: 2), to: .none)
    #expect(try test.code(with: pin("1357")) == right(3))
  }

  @Test func `a wrong key that was taken off is put on again by the undo code`() throws {
    let test = try stolen(host: nil)
    let code = try change(test, from: inputs(key: 7), to: .none)
    #expect(try test.code(with: pin("1357")) != right(0))
    try test.authenticator.undoChange(user: "alice", under: code)
    #expect(try test.authenticator.records().map(\.protection) == [[.pin, .key], [.pin, .key], []])
    #expect(try test.code(with: inputs("1357", key: 1)) == right(1))
  }

  @Test func `an older copy of the file and a newer one tell no PIN that came between, without the key`() throws {
    let test = try stolen(host: nil)
    let old = try blinded(test)
    let all = [.pin, .key] as ProtectionInputs
    #expect(fault { _ = try change(test, from: pin("1357"), to: pin("2468")) } == .protectionMismatch(all))
    #expect(fault { _ = try change(test, from: pin("1357"), to: .none) } == .protectionMismatch(all))
    let oldProtection = try test.authenticator.stored("alice", 1).usableSecret().protection
    _ = try change(test, from: inputs("1357", key: 1), to: inputs("2468", key: 1))
    let newProtection = try test.authenticator.stored("alice", 1).usableSecret().protection
    #expect(try test.code(with: inputs("2468", key: 1)) == right(0))
    func mask(_ protection: Protection, _ digits: String) throws -> [UInt8] {
      let zeros = SecretBytes(zeros: randomSecret.count)
      return try BlindedSecret(blinding: zeros, with: pin(digits), as: protection.only(.pin)).bytes.withBytes {
        [UInt8]($0)
      }
    }
    let difference = zip(old, try blinded(test)).map(^)
    let masks = zip(try mask(oldProtection, "1357"), try mask(newProtection, "2468")).map(^)
    #expect(difference != masks, "the two copies differ in the masks of the two PINs alone")
    try test.authenticator.confirmProtection(user: "alice")
    _ = try change(test, from: inputs("2468", key: 1), to: inputs(key: 1))
    #expect(try test.code(with: key(1)) == right(1))
  }

  @Test func `a protection reads back as it was written, and nothing else reads`() throws {
    var random = TestRandom(state: 3)
    for bits in UInt8(0)..<8 {
      let kinds = ProtectionInputs(rawValue: bits)
      let protector = try inputs(
        kinds.contains(.pin) ? "1357" : nil, key: kinds.contains(.key) ? 1 : nil, host: kinds.contains(.host) ? 2 : nil)
      let protection = try Protection.fresh(for: protector, cost: .test, random: &random)
      let bytes = protection.encoded
      #expect(try Protection(encoded: bytes) == protection && protection.inputs == kinds)
      for count in bytes.indices {
        #expect(throws: EncodingFault.self) { _ = try Protection(encoded: Array(bytes[..<count])) }
      }
      #expect(throws: EncodingFault.self) { _ = try Protection(encoded: bytes + [0]) }
      for other in UInt8(0)...23 where other != bits {
        // Key alone and nothing else have the same items as no other set.
        var wrong = bytes
        wrong[1] = other
        #expect(throws: EncodingFault.self) { _ = try Protection(encoded: wrong) }
      }
    }
  }

  @Test func `a PIN's cost is written as log2 of N, r and p, in this order`() throws {
    var random = RepeatingRandom([7])
    let cost = try #require(ScryptCost(logarithm: 4, blockSize: 3, parallelization: 2))
    let protection = try Protection.fresh(for: pin("1357"), cost: cost, random: &random)
    #expect(hex(protection.encoded) == "850150" + String(repeating: "07", count: 16) + "040302")
    #expect(try Protection(encoded: protection.encoded) == protection)
  }

  // Computed in Python, with salts of sixteen bytes 7 and N = 16, r = 3, p = 2.
  @Test(
    arguments: [
      ("1357", nil, nil, "c41c60b0531a015ecd82329fa5ffda88eced64ad"),
      (nil, 1, nil, "24956e937d150851852eb6f65a41d23e9351f96b"),
      (nil, nil, 2, "da3df93b78974332f00ca8b6a8ea5d27a71297ac"),
      ("1357", 1, 2, "3ab4f71856984a3db8a02cdf57545591d8ae0a6a"),
    ] as [(String?, UInt8?, UInt8?, String)])
  func `a secret under its masks has the bytes that were computed elsewhere`(
    digits: String?, key: UInt8?, host: UInt8?, blinded: String
  ) throws {
    var random = RepeatingRandom([7])
    let cost = try #require(ScryptCost(logarithm: 4, blockSize: 3, parallelization: 2))
    let protector = try inputs(digits, key: key, host: host)
    let protection = try Protection.fresh(for: protector, cost: cost, random: &random)
    let secret = try BlindedSecret(blinding: randomSecret.secret, with: protector, as: protection)
    #expect(hex(secret.bytes.array()) == blinded)
    if host != nil { #expect(hex(protection.encoded).hasSuffix("48e5ca672cb663b7c8"), "the check value of the host") }
  }

  @Test func `a state string carries all masks to another folder`() throws {
    let test = try stolen()
    var random = TestRandom(state: 12)
    let passphrase = try Passphrase(Array("correct horse".utf8).span)
    let line = try test.authenticator.exportState(under: passphrase, cost: .test, random: &random)
    let other = try TestAuthenticator()
    try other.authenticator.importState(Array(line.utf8).span, under: passphrase)
    #expect(fault { _ = try other.code(with: pin("1357")) } == .protectionMismatch([.pin, .key, .host]))
    #expect(try other.code(with: inputs("1357", key: 1, host: 2)) == right(0))
  }
}
