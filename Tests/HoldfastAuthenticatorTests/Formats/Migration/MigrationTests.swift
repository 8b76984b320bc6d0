import HoldfastAuthenticator
import HoldfastCore
import Testing

struct MigrationTests {
  @Test(
    "exports that others publish as examples are read, with and without fields that have defaults",
    arguments: [
      "CjEKCkhlbGxvId6tvu8SGEV4YW1wbGU6YWxpY2VAZ29vZ2xlLmNvbRoHRXhhbXBsZTAC",
      "CjUKCkhlbGxvId6tvu8SGEV4YW1wbGU6YWxpY2VAZ29vZ2xlLmNvbRoHRXhhbXBsZSABKAEwAhABGAEgACjr4JKkBg%3D%3D",
    ])
  func published(data: String) throws {
    let uri = "otpauth-migration://offline?data=" + data
    let credential = try #require(try read(uri, .migration).first)
    #expect(credential.issuer == "Example" && credential.user == "alice@google.com")
    #expect(credential.method == .totp(.sha1, .six, periodSeconds: 30) && credential.nextCounter == 0)
    #expect(credential.secretArray == Array("Hello!".utf8) + [0xde, 0xad, 0xbe, 0xef])
  }

  @Test("several accounts of one URI are read, each with its hash, digits and counter")
  func several() throws {
    let accounts = [
      MigrationWriter.account(name: "a", type: 1) { writer in
        writer.field(4, 2)
        writer.field(5, 2)
        writer.field(7, 9_007_199_254_740_991)
      },
      MigrationWriter.account(name: "B: b") { $0.field(4, 3) }, MigrationWriter.account(name: "x:y:z", issuer: "C"),
    ]
    let credentials = try read(MigrationWriter.part(accounts), .migration)
    #expect(credentials.map(\.user) == ["a", "b", "x:y:z"] && credentials.map(\.issuer) == ["", "B", "C"])
    #expect(credentials[0].method == .hotp(.sha256, .eight) && credentials[0].nextCounter == 9_007_199_254_740_991)
    #expect(credentials[1].method == .totp(.sha512, .six, periodSeconds: 30))
  }

  @Test("the parts of one export are put together, whatever their order")
  func parts() throws {
    let lines = ["a", "b", "c"].enumerated().map { index, name in
      MigrationWriter.part([MigrationWriter.account(name: name)], index: UInt64(index), count: 3)
    }
    let file = [lines[2], "", lines[0], lines[1]].joined(separator: "\r\n")
    #expect(try read(file, .migration).map(\.user) == ["a", "b", "c"])
    #expect(fault(lines[0] + "\n" + lines[2], .migration) == .missingPart(number: 2, count: 3))
    #expect(fault(lines[1], .migration) == .missingPart(number: 1, count: 3))
    #expect(fault((lines + [lines[1]]).joined(separator: "\n"), .migration) == .repeatedPart(number: 2))
    let foreign = MigrationWriter.part([MigrationWriter.account()], index: 2, count: 3, id: 78)
    #expect(fault([lines[0], lines[1], foreign].joined(separator: "\n"), .migration) == .foreignPart(line: 3))
    let other = MigrationWriter.part([MigrationWriter.account()], index: 1, count: 2)
    #expect(fault([lines[0], other].joined(separator: "\n"), .migration) == .foreignPart(line: 2))
  }

  @Test("fields of later versions are passed over, whatever their type")
  func unknownFields() throws {
    let account = MigrationWriter.account { writer in
      writer.field(8, Array("unique".utf8))
      writer.field(99, 1)
      writer.raw([0xf8, 0xff, 0xff, 0xff, 0x0f, 1])  // field 2^29 - 1, the last that there is
      writer.raw([0x51, 1, 2, 3, 4, 5, 6, 7, 8])  // field 10, 8 bytes
      writer.raw([0x5d, 1, 2, 3, 4])  // field 11, 4 bytes
    }
    #expect(try read(MigrationWriter.part([account]), .migration).count == 1)
    let part = MigrationWriter.message { writer in
      writer.field(1, account)
      writer.field(6, Array("more".utf8))
      writer.field(7, 1)
      writer.field(7, 2)
    }
    #expect(try read(MigrationWriter.uri(part), .migration).count == 1)
  }

  @Test("an account that cannot be Holdfast's is refused for just that")
  func accounts() {
    func reason(_ account: [UInt8]) -> ImportFault? { fault(MigrationWriter.part([account]), .migration) }
    #expect(reason(MigrationWriter.account { $0.field(4, 4) }) == .unsupportedAlgorithm)
    #expect(reason(MigrationWriter.account(type: 0)) == .unsupportedAlgorithm)
    #expect(reason(MigrationWriter.account(type: 3)) == .unsupportedAlgorithm)
    #expect(reason(MigrationWriter.account { $0.field(5, 3) }) == .invalidDigits)
    #expect(reason(MigrationWriter.account { $0.field(5, 11) }) == .invalidDigits)
    #expect(reason(MigrationWriter.account(type: 1) { $0.field(7, 1 << 53) }) == .invalidCounter)
    #expect(reason(MigrationWriter.account(type: 1) { $0.field(7, UInt64(bitPattern: -1)) }) == .invalidCounter)
    // The counter of an account without one is not looked at otherwise.
    #expect(reason(MigrationWriter.account(type: 2) { $0.field(7, 1 << 53) }) == .invalidCounter)
    #expect(reason(MigrationWriter.account(name: "")) == .invalidName)
    #expect(reason(MigrationWriter.account(name: "a\u{1b}[2J")) == .invalidName)
    #expect(reason(MigrationWriter.account(name: String(repeating: "a", count: 33))) == .userTooLong)
    #expect(reason(MigrationWriter.account(issuer: String(repeating: "a", count: 65))) == .issuerTooLong)
    #expect(reason([]) == .unsupportedAlgorithm)
    let noSecret = MigrationWriter.message { writer in
      writer.field(2, Array("a".utf8))
      writer.field(6, 2)
    }
    #expect(reason(noSecret) == .invalidSecret)
    let longSecret = MigrationWriter.message { writer in
      writer.field(1, [UInt8](repeating: 1, count: 129))
      writer.field(2, Array("a".utf8))
      writer.field(6, 2)
    }
    #expect(reason(longSecret) == .secretTooLong)
    let notText = MigrationWriter.message { writer in
      writer.field(2, [0xff])
      writer.field(6, 2)
    }
    #expect(reason(notText) == .invalidName)
  }

  @Test("every shorter payload, and every wrong form of a field, is malformed")
  func malformed() {
    let account = MigrationWriter.account()
    func reason(_ payload: [UInt8]) -> ImportFault? { fault(MigrationWriter.uri(payload), .migration) }
    let whole = MigrationWriter.message { $0.field(1, account) }
    #expect(reason(whole) == nil)
    for count in 1..<whole.count { #expect(reason(Array(whole.prefix(count))) == .malformed) }
    for wrong in [
      [0x08, 0x01],  // accounts as a number
      [0x12, 0x00],  // the version as bytes
      [0x10, 0x01, 0x10, 0x01],  // the version, twice
      [0x1b], [0x1c], [0x1e, 0x00], [0x1f, 0x00],  // groups, and types that do not exist
      [0x00, 0x00],  // field 0
      [0x80, 0x80, 0x80, 0x80, 0x10, 0x00],  // field 2^29
      [0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],  // 65 bits
      [0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],  // eleven bytes
      [0x10, 0x80],  // a number that does not end
      [0x51, 1, 2, 3, 4, 5, 6, 7], [0x5d, 1, 2, 3],  // 8 and 4 bytes that do not end
      [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],  // 2^64 - 1 bytes
      [0x18, 0x65], [0x20, 0x01], [0x18, 0x02, 0x20, 0x02],  // part numbers out of range
    ] as [[UInt8]] {
      #expect(reason(whole + wrong) == .malformed)
    }
    let twice = MigrationWriter.account { $0.field(6, 2) }
    #expect(reason(MigrationWriter.message { $0.field(1, twice) }) == .malformed)
    let wrongType = MigrationWriter.account { $0.field(4, [1]) }
    #expect(reason(MigrationWriter.message { $0.field(1, wrongType) }) == .malformed)
  }

  @Test("a URI that is no export is refused")
  func uris() {
    for uri in [
      "otpauth-migration://offline", "otpauth-migration://offline?", "otpauth-migration://online?data=AA%3D%3D",
      "otpauth-migration://offline?date=AA%3D%3D", "otpauth-migration://offline?data=A",
      "otpauth-migration://offline?data=AA", "otpauth-migration://offline?data=AA%3D%3",
      "otpauth-migration://offline?data=AA%3D%3D\(String(repeating: "A", count: 64))",
      "otpauth-migration://offline?data=AB%3D%3D", "otpauth-migration://offline?data=A-__",
      "otpauth://totp/a?secret=GE",
    ] {
      #expect(fault(uri, .migration) == .malformed)
    }
    #expect(fault("otpauth-migration://offline?data=&data=", .migration) == .repeatedParameter)
    #expect(fault("otpauth-migration://offline?data=", .migration) == .noAccount)
    #expect(fault("", .migration) == .noAccount)
  }
}
