import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct UndoCodeTests {
  private func text(_ code: borrowing UndoCode) throws -> String {
    try code.withText { String(decoding: [UInt8]($0), as: UTF8.self) }
  }

  private func read(_ text: String) -> String? {
    do throws(AuthenticatorFault) {
      let code = try UndoCode(Array(text.utf8).span)
      return try code.withText { String(decoding: [UInt8]($0), as: UTF8.self) }
    } catch { return nil }
  }

  @Test func `an undo code is seven groups of four, and reads back however it is typed`() throws {
    var random = TestRandom()
    for _ in 0..<100 {
      let written = try text(try UndoCode(random: &random))
      let groups = written.split(separator: "-")
      #expect(groups.count == 7 && groups.allSatisfy { $0.utf8.count == 4 })
      #expect(read(written) == written)
      #expect(read(written.lowercased()) == written)
      #expect(read(" " + groups.joined(separator: " ") + "\n") == written)
      #expect(read(groups.joined()) == written)
      let misread = String(written.map { $0 == "0" ? "O" : $0 == "1" ? "l" : $0 })
      #expect(read(misread) == written)
    }
  }

  @Test func `each wrong character but one in a thousand is noticed, and so is one too few or too many`() throws {
    var random = TestRandom(state: 5)
    let written = Array(try text(try UndoCode(random: &random)).utf8)
    var unnoticed = 0
    for index in written.indices where written[index] != 0x2d {
      for character in Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8) where character != written[index] {
        var wrong = written
        wrong[index] = character
        if read(String(decoding: wrong, as: UTF8.self)) != nil { unnoticed += 1 }
      }
    }
    #expect(unnoticed <= 5)
    #expect(read(String(decoding: written.dropLast(), as: UTF8.self)) == nil)
    #expect(read(String(decoding: written + [0x30], as: UTF8.self)) == nil)
    #expect(read("") == nil)
    #expect(read(String(repeating: "U", count: 28)) == nil)
  }

  @Test func `an undo copy is of no use for another record, nor for another secret in its own`() throws {
    let test = try TestAuthenticator()
    let authenticator = test.authenticator
    var random = TestRandom(state: 5)
    try authenticator.add(
      [NewRecord("alice"), NewRecord("bob", secret: randomSecret)], protection: .none, random: &random)
    let alice = try authenticator.record(user: "alice", purpose: .otp)
    let code = try authenticator.prepareChange(of: alice, random: &random)
    let stored = try authenticator.tables.records()
    let undo = try #require(stored[0].undo)
    var cryptography = OpenSSLCryptography()
    let opened = stored.map { UndoCopy.open(undo, for: $0.record, under: code, using: &cryptography) != nil }
    #expect(opened == [true, false])
    var exchanged = stored[0]
    exchanged.secret = stored[1].secret
    try authenticator.tables.save(exchanged)
    let new = try pin("2468")
    #expect(throws: AuthenticatorFault.wrongUndoCode) {
      try authenticator.change(alice, from: .none, to: new, under: code, random: &random)
    }
  }
}
