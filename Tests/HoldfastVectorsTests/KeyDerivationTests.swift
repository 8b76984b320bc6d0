import HoldfastVectors
import Testing

/// Tests in the form of NIST's for key derivation, computed by another library.
@Suite struct KeyDerivationTests {
  private static let derived = [
    "HKDF": (
      "B23DC3325F4E88557BF2E4EC9C004A4D58E87682C522F7CCFA5B32FCB834D3DB",
      "684E62C51DE835C42F4F244442CF7C853CF1263B03992615D7E3125D2B92B4EEEF1FEC6111E321B5"
    ),
    "OneStep": (
      "45A7918A1CD9AF1C56E50873E14538FF060F5E37CE0C7770278228AD3D44FD0B",
      "2A3EAC9353E3DFE3ED2980386362C644D2DFDEF6073F658259A6335F47A91804F1DEBCA82A7608C7"
    ),
  ]

  private func outcome(
    _ mode: String, bits: Int = 256, dkm: String? = nil, pattern: String = "uPartyInfo||vPartyInfo||l||literal[abcd]",
    hash: String = "SHA2-256", type: String = "AFT", more: String = "", second: String = ""
  ) throws -> String {
    let known = Self.derived[mode]
    let result = dkm ?? (bits == 256 ? known?.0 : known?.1) ?? "00"
    let report = try replay(
      """
      {"vsId":0,"algorithm":"KDA","mode":"\(mode)","testGroups":[{"tgId":1,"testType":"\(type)","tests":[{"tcId":7,\(more)
      "kdfParameter":{\(second)"salt":"0505050505050505","z":"0101010101010101","l":\(bits),"fixedInfoPattern":"\(pattern)",
      "fixedInputEncoding":"concatenation","hmacAlg":"\(hash)","auxFunction":"\(hash)"},
      "fixedInfoPartyU":{"partyId":"02020202","ephemeralData":"0303"},"fixedInfoPartyV":{"partyId":"04040404"},
      "dkm":"\(result)"}]}]}
      """)
    return report.skips.first?.reason ?? report.failures.first?.happened
      ?? report.faults.first.map { "\($0.kind)" } ?? "passed"
  }

  @Test(arguments: ["HKDF", "OneStep"], [256, 320])
  func `the derived key is compared`(mode: String, bits: Int) throws {
    #expect(try outcome(mode, bits: bits) == "passed")
    #expect(try outcome(mode, bits: bits, dkm: String(repeating: "5a", count: bits / 8)) == "accepted, but dkm differs")
    #expect(try outcome(mode, bits: bits, more: #""testPassed":false,"#) == "accepted")
    let wrong = String(repeating: "5a", count: bits / 8)
    #expect(try outcome(mode, bits: bits, dkm: wrong, more: #""testPassed":false,"#) == "passed")
    #expect(try outcome(mode, bits: bits, pattern: "vPartyInfo||uPartyInfo||l||literal[abcd]") != "passed")
  }

  @Test(arguments: [
    ("HKDF", "", "6f8607cca6f3f16a52e2acb618c5d5d0b1225d7d7c83691968cf4c0bd367c9eb"),
    ("HKDF", "||t", "5dac5b89797c8535a3ad86e239e6d60d3410be85f66b218b6bfe72d962226cce"),
    ("OneStep", "", "45A7918A1CD9AF1C56E50873E14538FF060F5E37CE0C7770278228AD3D44FD0B"),
    ("OneStep", "||t", "ff7ff2957b480da60536256d5aeca1bcc797d70e52582334bb2cb91494452e57"),
  ])
  func `a second secret follows the first in HKDF, or is a part of the context`(
    mode: String, part: String, dkm: String
  ) throws {
    let pattern = "uPartyInfo||vPartyInfo||l||literal[abcd]" + part
    #expect(try outcome(mode, dkm: dkm, pattern: pattern, second: #""t":"07070707","#) == "passed")
  }

  @Test func `several keys of one secret are compared`() throws {
    func outcome(_ iterations: String, _ keys: String) throws -> String {
      let report = try replay(
        """
        {"algorithm":"KDA","mode":"HKDF","testGroups":[{"tgId":1,"testType":"VAL","tests":[{"tcId":7,"testPassed":true,
        "kdfMultiExpansionParameter":{"kdfType":"hkdf","salt":"0505050505050505","z":"0101010101010101",
        "hmacAlg":"SHA2-256","iterationParameters":[\(iterations)]},"dkms":[\(keys)]}]}]}
        """)
      return report.skips.first?.reason ?? report.failures.first?.happened ?? "passed"
    }
    let (one, other) = (#"{"l":256,"fixedInfo":"aa"}"#, #"{"l":320,"fixedInfo":"bb"}"#)
    let first = #""949b91a262912a5a1abef119a8748b83840cc58400541a263b8628d326f31a1c""#
    let second = #""fe445a28ba860168204248e8edb5bf9c960ca15e426941c28cdac75323cb4082c9755a326bd45d2a""#
    #expect(try outcome("\(one),\(other)", "\(first),\(second)") == "passed")
    #expect(try outcome("\(one),\(other)", "\(second),\(first)") == "accepted, but dkm differs")
    #expect(try outcome("\(one),\(one)", "\(first),\(second)") == "accepted, but dkm differs")
    #expect(throws: VectorFault.self) { try outcome("\(one),\(other)", "\(first)") }
    #expect(throws: VectorFault.self) { try outcome("", "") }
  }

  @Test func `a prompt, which does not say whether its keys are right, is skipped`() throws {
    #expect(try outcome("HKDF", type: "VAL") == "no testPassed")
    #expect(try outcome("HKDF", type: "VAL", more: #""testPassed":true,"#) == "passed")
  }

  @Test func `what Holdfast does not have is skipped with its reason`() throws {
    #expect(try outcome("HKDF", hash: "SHA3-256") == "hmacAlg SHA3-256")
    #expect(try outcome("OneStep", hash: "KMAC-128") == "OneStep with KMAC-128")
    #expect(try outcome("TwoStep") == "mode TwoStep")
    #expect(try outcome("HKDF", bits: 255) == "255 bits")
    #expect(try outcome("HKDF", pattern: "uPartyInfo||entropyBits") == "fixedInfoPattern")
    #expect(try outcome("HKDF", bits: 255 * 256 + 8) == "refused: 65288 bits")
  }

  @Test func `a test that lacks a member is named, and one without a result is skipped`() throws {
    let text = """
      {"algorithm":"KDA","mode":"HKDF","testGroups":[{"tgId":1,"tests":[{"tcId":1,"dkm":"00"},
      {"tcId":2,"kdfParameter":{}},{"tcId":3,"dkm":"0","kdfParameter":{}},{"tcId":4,"dkm":"00","kdfParameter":{}}]}]}
      """
    let report = try VectorFile(parsing: Array(text.utf8), name: "test.json").replay()
    #expect(report.skips.map(\.reason) == ["no kdfParameter", "no dkm"])
    #expect(report.faults.map(\.testIDs) == [[3], [4]])
  }

  @Test func `a test without a number, and a group without tests, leave out nothing else`() throws {
    let text = """
      {"algorithm":"KDA","mode":"HKDF","testGroups":[{"tests":[{"dkm":"00"},{"tcId":2}]},{"tests":1},
      {"tests":[{"tcId":3,"testPassed":"no"},{"tcId":4}]}]}
      """
    let report = try VectorFile(parsing: Array(text.utf8), name: "test.json").replay()
    #expect(report.summary == "0 passed, 3 failed, 2 skipped")
    #expect(report.faults.map(\.testIDs) == [[], [], [3]])
  }
}
