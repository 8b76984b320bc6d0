import HoldfastCore
import HoldfastOpenSSL
import Testing

import HoldfastAuthenticator

struct WriteURITests {
  private func text(_ credential: Credential) throws -> String {
    String(decoding: try credential.otpauthURI().array(), as: UTF8.self)
  }

  @Test("a URI says everything, with nothing left to a reader's defaults")
  func written() throws {
    let totp = Credential(
      issuer: "ACME Co", user: "jörg@x", method: .totp(.sha256, .eight, periodSeconds: 60), secret: "1234567890".secret)
    #expect(
      try text(totp)
        == "otpauth://totp/ACME%20Co:j%C3%B6rg%40x?secret=GEZDGNBVGY3TQOJQ&issuer=ACME%20Co&algorithm=SHA256&digits=8&period=60"
    )
    let hotp = Credential(user: "a", method: .hotp(.sha1, .six), nextCounter: 5, secret: "1".secret)
    #expect(try text(hotp) == "otpauth://hotp/a?secret=GE&algorithm=SHA1&digits=6&counter=5")
  }

  @Test("an OCRA account, and a name that would be read as another, cannot be written")
  func refused() {
    let ocra = Credential(user: "a", method: .ocra(.usualSeal), secret: "1".secret)
    #expect(throws: ExportFault.unsupportedMethod) { _ = try ocra.otpauthURI() }
    for (issuer, user) in [("a:b", "c"), ("", "a:b"), ("a", " b")] {
      let credential = Credential(issuer: issuer, user: user, method: .hotp(.sha1, .six), secret: "1".secret)
      #expect(throws: ExportFault.ambiguousName) { _ = try credential.otpauthURI() }
    }
  }

  @Test("what is written is read as it was, over 2,000 random accounts")
  func roundTrip() throws {
    var random = RepeatableRandom(seed: 20)
    for _ in 0..<2000 {
      let account = Self.account(&random)
      let back = try #require(try read(try text(account), .otpauth).first)
      try #require(back.issuer == account.issuer && back.user == account.user)
      try #require(back.method == account.method && back.nextCounter == account.nextCounter)
      try #require(back.secretArray == account.secretArray)
    }
  }

  private static func account(_ random: inout RepeatableRandom) -> Credential {
    let letters = Array("abcXYZ019 -_.~!$&'()*+,;=@/?%#\"<>[]é漢😀")
    func name(_ limit: Int, _ random: inout RepeatableRandom) -> String {
      var name = ""
      for _ in 0..<Int.random(in: 0...limit, using: &random) {
        let letter = letters.randomElement(using: &random) ?? "x"
        if name.utf8.count + String(letter).utf8.count <= limit { name.append(letter) }
      }
      return name
    }
    let user = "u" + name(31, &random)
    let issuer = name(64, &random)
    let hash = OATHHash.allCases.randomElement(using: &random) ?? .sha1
    let length = CodeLength(Int.random(in: 4...10, using: &random)) ?? .six
    let secret = (0..<Int.random(in: 1...128, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
    if Bool.random(using: &random) {
      return Credential(
        issuer: issuer, user: user, method: .hotp(hash, length),
        nextCounter: UInt64.random(in: 0...Credential.maximumCounter, using: &random), secret: secret.secret)
    }
    let periodSeconds = UInt64.random(in: 1...86_400, using: &random)
    return Credential(
      issuer: issuer, user: user, method: .totp(hash, length, periodSeconds: periodSeconds), secret: secret.secret)
  }
}
