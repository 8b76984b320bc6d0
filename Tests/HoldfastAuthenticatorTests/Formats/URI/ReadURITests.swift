import HoldfastAuthenticator
import HoldfastCore
import Testing

struct ReadURITests {
  @Test("a URI with the secret alone has the format's defaults")
  func defaults() throws {
    let credentials = try read("otpauth://totp/alice@example.com?secret=GEZDGNBVGY3TQOJQ", .otpauth)
    let credential = try #require(credentials.first)
    #expect(credential.issuer == "" && credential.user == "alice@example.com" && credential.nextCounter == 0)
    #expect(credential.method == .totp(.sha1, .six, periodSeconds: 30))
    #expect(credential.secretArray == Array("1234567890".utf8))
  }

  @Test("every parameter is read, in any order")
  func everything() throws {
    let uri =
      "otpauth://totp/ACME%20Co:%20j%C3%B6rg?period=60&digits=8&secret=gezdgnbvgy3tqojq&algorithm=sha512&issuer=ACME%20Co"
    let credential = try #require(try read(uri, .otpauth).first)
    #expect(credential.issuer == "ACME Co" && credential.user == "jörg")
    #expect(credential.method == .totp(.sha512, .eight, periodSeconds: 60))
  }

  @Test("a counter of a HOTP account is the next one")
  func counter() throws {
    let uri = "otpauth://hotp/a?counter=9007199254740991&algorithm=SHA256&secret=GE&period=x"
    let credential = try #require(try read(uri, .otpauth).first)
    #expect(credential.method == .hotp(.sha256, .six) && credential.nextCounter == 9_007_199_254_740_991)
  }

  @Test("the issuer parameter goes before the label's; without one the label's is it")
  func issuer() throws {
    #expect(try read("otpauth://totp/A:b?secret=GE&issuer=C", .otpauth).first?.issuer == "C")
    #expect(try read("otpauth://totp/A%3Ab?secret=GE", .otpauth).first?.issuer == "A")
    #expect(try read("otpauth://totp/A%3Ab?secret=GE", .otpauth).first?.user == "b")
  }

  @Test("unknown parameters are passed over, and padding of the secret is as good as none")
  func unknown() throws {
    let uri = "otpauth://totp/a?secret=GE%3D%3D%3D%3D%3D%3D&image=https%3A%2F%2Fexample.com%2Fa.png&lock"
    #expect(fault(uri, .otpauth) == .malformed)
    #expect(try read(uri + "=1", .otpauth).first?.secretArray == Array("1".utf8))
    #expect(try read("otpauth://totp/a?secret=GE======", .otpauth).first?.secretArray == Array("1".utf8))
  }

  @Test("a file has one URI a line; empty lines and carriage returns do not matter")
  func lines() throws {
    let file = "\u{FEFF}otpauth://totp/a?secret=GE\r\n\r\n  otpauth://hotp/b?secret=GI&counter=1  \n\n"
    #expect(try read(file, .otpauth).map(\.user) == ["a", "b"])
    #expect(try read(" otpauth://totp/a?secret=GE ", .otpauth).map(\.user) == ["a"])
    #expect(fault("", .otpauth) == .noAccount)
    #expect(fault("otpauth://totp/a?secret=GE\nnonsense", .otpauth) == .malformed)
  }

  @Test("a user may be named for one account, and not for several")
  func user() throws {
    let parameters = ImportParameters(user: "bob")
    let tooLong = "otpauth://totp/\(String(repeating: "a", count: 33))?secret=GE"
    #expect(fault(tooLong, .otpauth) == .userTooLong)
    #expect(try read(tooLong, .otpauth, parameters).map(\.user) == ["bob"])
    #expect(fault("otpauth://totp/a?secret=GE\notpauth://totp/b?secret=GE", .otpauth, parameters) == .severalAccounts)
  }

  @Test("the least and greatest number of digits and of seconds are read")
  func limits() throws {
    for digits in [4, 10] {
      let method = try read("otpauth://totp/a?secret=GE&digits=\(digits)", .otpauth).first?.method
      #expect(method == .totp(.sha1, CodeLength(digits)!, periodSeconds: 30))
    }
    for seconds: UInt64 in [1, 86_400] {
      let method = try read("otpauth://totp/a?secret=GE&period=\(seconds)", .otpauth).first?.method
      #expect(method == .totp(.sha1, .six, periodSeconds: seconds))
    }
  }

  @Test("a file has at most a thousand accounts")
  func tooMany() throws {
    let uri = "otpauth://totp/a?secret=GE\n"
    #expect(try read(String(repeating: uri, count: 1000), .otpauth).count == 1000)
    #expect(fault(String(repeating: uri, count: 1001), .otpauth) == .tooLarge)
  }

  @Test(
    "a URI that says something wrong is refused for just that",
    arguments: [
      ("otpauth://totp/a", ImportFault.invalidSecret), ("otpauth://totp/a?secret=", .invalidSecret),
      ("otpauth://totp/a?issuer=b", .invalidSecret), ("otpauth://totp/a?secret=GEZDGNB1", .invalidSecret),
      ("otpauth://totp/a?secret=G%00", .invalidSecret), ("otpauth://totp/a?secret=GE===", .invalidSecret),
      ("otpauth://totp/a?secret=\(String(repeating: "A", count: 208))", .secretTooLong),
      ("otpauth://totp/a?secret=GE&secret=GE", .repeatedParameter),
      ("otpauth://totp/a?secret=GE&digits=6&digits=8", .repeatedParameter),
      ("otpauth://totp/a?secret=GE&dig%69ts=6&digits=8", .repeatedParameter),
      ("otpauth://totp/a?secret=GE&x=1&x=1", .repeatedParameter),
      ("otpauth://totp/a?secret=GE&digits=3", .invalidDigits), ("otpauth://totp/a?secret=GE&digits=11", .invalidDigits),
      ("otpauth://totp/a?secret=GE&digits=06", .invalidDigits), ("otpauth://totp/a?secret=GE&digits=", .invalidDigits),
      ("otpauth://totp/a?secret=GE&digits=-6", .invalidDigits),
      ("otpauth://totp/a?secret=GE&digits=9007199254740991", .invalidDigits),
      ("otpauth://totp/a?secret=GE&period=0", .invalidPeriod),
      ("otpauth://totp/a?secret=GE&period=86401", .invalidPeriod),
      ("otpauth://totp/a?secret=GE&period=3e1", .invalidPeriod),
      ("otpauth://totp/a?secret=GE&period=18446744073709551646", .invalidPeriod),
      ("otpauth://totp/a?secret=GE&algorithm=MD5", .unsupportedAlgorithm),
      ("otpauth://totp/a?secret=GE&algorithm=", .unsupportedAlgorithm),
      ("otpauth://steam/a?secret=GE", .unsupportedAlgorithm), ("otpauth://TOTP/a?secret=GE", .unsupportedAlgorithm),
      ("otpauth://hotp/a?secret=GE", .invalidCounter), ("otpauth://hotp/a?secret=GE&counter=", .invalidCounter),
      ("otpauth://hotp/a?secret=GE&counter=-1", .invalidCounter),
      ("otpauth://hotp/a?secret=GE&counter=9007199254740992", .invalidCounter),
      ("otpauth://totp/?secret=GE", .invalidName), ("otpauth://totp/A:?secret=GE", .invalidName),
      ("otpauth://totp/A:%20?secret=GE", .invalidName), ("otpauth://totp/A:b:c?secret=GE", .invalidName),
      ("otpauth://totp/a%0Ab?secret=GE", .invalidName), ("otpauth://totp/a%00?secret=GE", .invalidName),
      ("otpauth://totp/a%1B%5B2J?secret=GE", .invalidName), ("otpauth://totp/a%C2%85?secret=GE", .invalidName),
      ("otpauth://totp/a%C0%AF?secret=GE", .invalidName), ("otpauth://totp/a%FF?secret=GE", .invalidName),
      ("otpauth://totp/a%ED%A0%80?secret=GE", .invalidName), ("otpauth://totp/a?secret=GE&issuer=%07", .invalidName),
      ("otpauth://totp/a?secret=GE&issuer=\(String(repeating: "i", count: 65))", .issuerTooLong),
      ("otpauth://totp/a%?secret=GE", .malformed), ("otpauth://totp/a%4?secret=GE", .malformed),
      ("otpauth://totp/a%zz?secret=GE", .malformed), ("otpauth://totp/a b?secret=GE", .malformed),
      ("otpauth://totp/jörg?secret=GE", .malformed), ("otpauth://totp/a?secret=GE&", .malformed),
      ("otpauth://totp/a?&secret=GE", .malformed), ("otpauth://totp/a?secret=GE&=1", .malformed),
      ("otpauth://totp/a?", .malformed), ("otpauth://totp/a?secret=GE#x", .invalidSecret),
      ("http://totp/a?secret=GE", .malformed), ("otpauth-migration://offline?data=", .malformed),
    ])
  func refuses(uri: String, reason: ImportFault) {
    #expect(fault(uri, .otpauth) == reason)
  }
}
