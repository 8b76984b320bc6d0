import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastAuthenticator

/// The contents that a thief of the file has.
@Suite struct StolenFileTests {
  private static let records = [
    NewRecord(secret: randomSecret), NewRecord("alice", 2, .seal, .usualSeal, secret: randomSecret.reversed()),
    NewRecord("alice", 3, .otp, .totp, secret: randomSecret + randomSecret),
  ]

  private func stolen(_ pinDigits: String, cost: ScryptCost = .test) throws -> TestAuthenticator {
    let test = try TestAuthenticator(cost: cost)
    try test.add(Self.records, protection: pin(pinDigits))
    return test
  }

  @Test func `each of the 10,000 PINs of four digits makes a well-formed code of a stolen file`() throws {
    let test = try stolen("1357")
    var codes: Set<String> = []
    for number in 0..<10_000 {
      let secret = try pin(String(String(10_000 + number).dropFirst()))
      let counted = try test.authenticator.record(index: 1, purpose: .otp)
      let code = try test.authenticator.code(for: counted, with: secret, clock: TestClock()).text
      guard code.utf8.count == 6, code.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
        Issue.record("PIN \(number) makes no code")
        continue
      }
      codes.insert(code)
      if number % 100 == 0 {
        let timed = try test.authenticator.record(index: 3, purpose: .otp)
        #expect(try test.authenticator.code(for: timed, with: secret, clock: TestClock()).text.utf8.count == 8)
        let sealing = try test.authenticator.record(purpose: .seal)
        let request = try SealRequest(command: "open-safe", parameters: ["1"])
        #expect(
          try test.authenticator.seal(request, for: sealing, with: secret, clock: TestClock()).text.utf8.count == 8)
      }
    }
    // As many as 10,000 draws from a million give.
    #expect((9_850...10_000).contains(codes.count))
  }

  /// Every column of every row, by name.
  private func rows(_ test: TestAuthenticator) throws -> [[String: String]] {
    let database = test.authenticator.tables.database
    var rows: [[String: String]] = []
    var names: [String] = []
    try database.query("SELECT name FROM pragma_table_info('records') ORDER BY cid") { (row) throws(DatabaseError) in
      names.append(try row.text(0))
    }
    let values: StaticString = """
      SELECT quote(user), quote(number), quote(purpose), quote(issuer), quote(device_id), quote(method),
        quote(next_counter), quote(acknowledged_counter), quote(clock_offset), quote(last_time_step),
        quote(last_synchronised), quote(look_ahead), quote(seal_field_limit), quote(protection_group),
        quote(is_confirmed), quote(protection), quote(secret), quote(change), quote(undo), quote(client_challenge),
        quote(change_position), quote(demand)
      FROM records ORDER BY user, number
      """
    try database.query(values) { (row) throws(DatabaseError) in
      var columns: [String: String] = [:]
      for (index, name) in names.enumerated() { columns[name] = try row.text(index) }
      rows.append(columns)
    }
    return rows
  }

  private func differences(_ left: TestAuthenticator, _ right: TestAuthenticator) throws -> Set<String> {
    let (left, right) = (try rows(left), try rows(right))
    #expect(left.count == right.count && !left.isEmpty)
    var names: Set<String> = []
    for (left, right) in zip(left, right) {
      #expect(left.count == 22)
      for name in left.keys where left[name] != right[name] { names.insert(name) }
    }
    return names
  }

  private func tables(_ test: TestAuthenticator) throws -> [String] {
    try test.authenticator.tables.database.all("SELECT name FROM sqlite_schema ORDER BY name") {
      (row) throws(DatabaseError) in try row.text(0)
    }
  }

  @Test func `files of two PINs and the same chance differ in the blinded secrets alone`() throws {
    let (left, right) = (try stolen("1357"), try stolen("2468"))
    #expect(try differences(left, right) == ["secret"])
    #expect(try tables(left) == ["erasures", "records", "replacements"])
    // The mask is all that differs: any PIN explains any file, with another secret.
    let (first, second) = (try left.authenticator.stored("alice", 1), try right.authenticator.stored("alice", 1))
    let stored = try #require(first.secret)
    let explained = try stored.unblinded(with: pin("2468"))
    let blinded = try BlindedSecret(blinding: explained, with: pin("2468"), as: stored.protection)
    #expect(blinded.isSame(as: stored))
    #expect(first.secret?.protection == second.secret?.protection)
  }

  @Test func `nothing that a code leaves in the file depends on the PIN`() throws {
    let (left, right) = (try stolen("1357"), try stolen("2468"))
    for (test, digits) in [(left, "1357"), (right, "2468")] {
      for index in [1, 3] { _ = try test.code(index: index, with: pin(digits)) }
    }
    #expect(try differences(left, right) == ["secret"])
  }

  @Test func `a secret is not stored twice: only the right PIN would make the same of both`() throws {
    func isRefused(_ records: [NewRecord], in test: TestAuthenticator, _ digits: String? = "1357") throws -> Bool {
      do {
        if let digits {
          try test.add(records, protection: pin(digits))
        } else {
          try test.add(records, protection: .none)
        }
        return false
      } catch AuthenticatorFault.secretTwice { return true }
    }
    let (first, second) = (NewRecord("bob", 1, secret: rfcSecret), NewRecord("bob", 2, secret: rfcSecret))
    let host = NewRecord("bob", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"), secret: rfcSecret)
    let test = try stolen("1357")
    #expect(try isRefused([first, second], in: test))
    #expect(try isRefused([first, host], in: test))
    #expect(try isRefused([NewRecord("bob", 1, secret: randomSecret)], in: test))
    // Nobody can tell: the other one's PIN is another.
    #expect(try !isRefused([NewRecord("bob", 1, secret: randomSecret)], in: test, "2468"))
    let open = try TestAuthenticator()
    #expect(try !isRefused([first, second, host], in: open, nil))
    #expect(try isRefused([NewRecord("carol", 1, secret: rfcSecret)], in: open))
    #expect(try open.authenticator.records().count == 3)
  }

  @Test func `the salts of records that share a PIN differ, and so do their masks`() throws {
    let test = try stolen("1357")
    let protections = try test.authenticator.tables.records().map { $0.secret?.protection.encoded }
    #expect(Set(protections).count == 3)
  }

  @Test func `a change of the PIN shows no more of it than the file did before`() throws {
    let (left, right) = (try stolen("1357"), try stolen("1357"))
    for (test, digits) in [(left, "2468"), (right, "8642")] {
      var random = TestRandom(state: 5)
      let record = try test.authenticator.record(index: 1, purpose: .otp)
      let code = try test.authenticator.prepareChange(of: record, random: &random)
      try test.authenticator.change(record, from: pin("1357"), to: pin(digits), under: code, random: &random)
    }
    #expect(try differences(left, right) == ["secret"])
    for stored in try left.authenticator.tables.records() {
      let nonceTagAndFraming = 12 + 16 + 1 + stored.secret!.protection.encoded.count + 2
      #expect(stored.undo?.count ?? 0 <= nonceTagAndFraming + stored.secret!.bytes.count)
    }
  }

  @Test func `a PIN's mask costs what RFC 7914 says it does`() throws {
    let test = try stolen("1357", cost: .interactive)
    let cost = try #require(try test.authenticator.stored("alice", 1).secret?.protection.pin).cost
    #expect(cost == .interactive && cost.memoryByteCount == 32 << 20)
  }
}
