import HoldfastAuthenticator
import HoldfastCore
import HoldfastOpenSSL
import Testing

/// Files with some bytes changed, left out or repeated: read or refused, and never more than that.
struct MutatedFilesTests {
  @Test("mutated files are read or refused, and what is read keeps to the limits", arguments: CredentialFormat.allCases)
  func mutated(format: CredentialFormat) {
    var random = RepeatableRandom(seed: 6)
    let account = ImportParameters.Account(user: "alice", method: .hotp(.sha1, .six))
    for original in Self.originals(format) {
      for _ in 0..<1000 {
        let parameters = ImportParameters(account: account, containerKey: .preShared(ContainerText.figure6Key.secret))
        let bytes = Self.mutate(original, &random)
        guard let read = try? Credential.read(bytes.span, format: format, parameters: parameters) else { continue }
        for credential in read {
          #expect((1...128).contains(credential.secret.count))
          #expect((1...32).contains(credential.user.utf8.count) && credential.issuer.utf8.count <= 64)
          #expect(credential.nextCounter < 1 << 53)
        }
      }
    }
  }

  private static func originals(_ format: CredentialFormat) -> [[UInt8]] {
    let texts =
      switch format {
      case .otpauth:
        [
          "otpauth://hotp/ACME:a%20b?secret=GEZDGNBVGY3TQOJQ&issuer=ACME&algorithm=SHA256&digits=8&counter=7\n"
            + "otpauth://totp/c?secret=GE%3D%3D%3D%3D%3D%3D&period=60"
        ]
      case .migration:
        [
          MigrationWriter.part([MigrationWriter.account(type: 1) { $0.field(7, 300) }], index: 0, count: 2) + "\n"
            + MigrationWriter.part([MigrationWriter.account(), MigrationWriter.account()], index: 1, count: 2)
        ]
      case .pskc: [ContainerText().text, ContainerText.figure6.text]
      case .base32: ["GEZDGNBVGY3TQOJQ\n"]
      case .hex: ["3132333435363738\n"]
      case .raw: ["12345678"]
      }
    return texts.map { Array($0.utf8) }
  }

  private static func mutate(_ original: [UInt8], _ random: inout RepeatableRandom) -> [UInt8] {
    var bytes = original
    for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
      let place = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0...4, using: &random) {
      case 0: bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &random)
      case 1: bytes[place] = UInt8.random(in: 0...255, using: &random)
      case 2: bytes.remove(at: place)
      case 3: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: place)
      default: bytes.removeLast(min(bytes.count, Int.random(in: 0...8, using: &random)))
      }
    }
    return bytes
  }

  @Test("protobufs with random bytes are read or refused")
  func randomPayloads() {
    var random = RepeatableRandom(seed: 7)
    for _ in 0..<5000 {
      let count = Int.random(in: 0...40, using: &random)
      let payload = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) & 0x7f }
      let account = fault(MigrationWriter.uri(MigrationWriter.message { $0.field(1, payload) }), .migration)
      let part = fault(MigrationWriter.uri(payload), .migration)
      // So few random bytes name no secret, user and type at once.
      #expect(account != nil && part != nil)
    }
  }
}
