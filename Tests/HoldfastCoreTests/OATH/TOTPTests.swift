import HoldfastCore
import HoldfastOpenSSL
import Testing

struct TOTPTests {
  /// RFC 6238 appendix B: Unix seconds and the codes by SHA-1, SHA-256 and SHA-512, whose keys have 20, 32 and 64 bytes.
  private static let table: [(unixSeconds: UInt64, step: UInt64, codes: [String])] = [
    (59, 0x1, ["94287082", "46119246", "90693936"]),
    (1_111_111_109, 0x23523ec, ["07081804", "68084774", "25091201"]),
    (1_111_111_111, 0x23523ed, ["14050471", "67062674", "99943326"]),
    (1_234_567_890, 0x273ef07, ["89005924", "91819424", "93441116"]),
    (2_000_000_000, 0x3f940aa, ["69279037", "90698825", "38618901"]),
    (20_000_000_000, 0x27bc_86aa, ["65353130", "77737706", "47863826"]),
  ]

  @Test("the table of RFC 6238 appendix B comes out", arguments: 0..<6, 0..<3)
  func rfc6238(row: Int, hashIndex: Int) throws {
    let row = Self.table[row]
    let hash = OATHHash.allCases[hashIndex]
    let key = (0..<hash.byteCount).map { UInt8(($0 + 1) % 10) + 0x30 }
    let step = TOTP.timeStep(at: row.unixSeconds, periodSeconds: 30)
    #expect(step == row.step)
    var cryptography = OpenSSLCryptography()
    let code = try HOTP.code(counter: step, key: key.span, hash: hash, length: .eight, using: &cryptography)
    #expect(code.description == row.codes[hashIndex])
  }

  @Test("a step begins with its first second and ends before the next one's")
  func stepEdges() {
    #expect(TOTP.timeStep(at: 0, periodSeconds: 30) == 0)
    #expect(TOTP.timeStep(at: 29, periodSeconds: 30) == 0)
    #expect(TOTP.timeStep(at: 30, periodSeconds: 30) == 1)
    #expect(TOTP.timeStep(at: .max, periodSeconds: 1) == .max)
    #expect(TOTP.timeStep(at: 4_294_967_295, periodSeconds: 86_400) == 49_710)
  }
}
