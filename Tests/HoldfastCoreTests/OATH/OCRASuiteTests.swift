import HoldfastCore
import Testing

struct OCRASuiteTests {
  @Test(
    "suites of RFC 6287 are read",
    arguments: [
      "OCRA-1:HOTP-SHA1-6:QN08", "OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1", "OCRA-1:HOTP-SHA256-8:QN08-PSHA1",
      "OCRA-1:HOTP-SHA512-8:C-QN08", "OCRA-1:HOTP-SHA512-8:QN08-T1M", "OCRA-1:HOTP-SHA256-8:QA08",
      "OCRA-1:HOTP-SHA512-8:QA10-T1M", "OCRA-1:HOTP-SHA1-0:QH64-S512",
      "OCRA-1:HOTP-SHA512-10:C-QA64-PSHA512-S064-T48H",
    ])
  func read(_ text: String) throws {
    let suite = try #require(OCRASuite(text))
    #expect(suite.text.description == text)
  }

  @Test(
    "anything else is no suite",
    arguments: [
      "", "OCRA-1", "OCRA-2:HOTP-SHA1-6:QN08", "ocra-1:hotp-sha1-6:qn08", "OCRA-1:HOTP-SHA1-6:",
      "OCRA-1:HOTP-SHA1-6:C-",
      "OCRA-1:HOTP-SHA1-3:QN08", "OCRA-1:HOTP-SHA1-11:QN08", "OCRA-1:HOTP-SHA1-06:QN08", "OCRA-1:HOTP-SHA384-6:QN08",
      "OCRA-1:HOTP-SHA1-6:QX08", "OCRA-1:HOTP-SHA1-6:QN8", "OCRA-1:HOTP-SHA1-6:QN03", "OCRA-1:HOTP-SHA1-6:QN65",
      "OCRA-1:HOTP-SHA1-6:QN08-S", "OCRA-1:HOTP-SHA1-6:QN08-S64", "OCRA-1:HOTP-SHA1-6:QN08-S000",
      "OCRA-1:HOTP-SHA1-6:QN08-S513", "OCRA-1:HOTP-SHA1-6:QN08-T", "OCRA-1:HOTP-SHA1-6:QN08-T0M",
      "OCRA-1:HOTP-SHA1-6:QN08-T60S", "OCRA-1:HOTP-SHA1-6:QN08-T60M", "OCRA-1:HOTP-SHA1-6:QN08-T49H",
      "OCRA-1:HOTP-SHA1-6:QN08-T01M", "OCRA-1:HOTP-SHA1-6:QN08-T1D", "OCRA-1:HOTP-SHA1-6:QN08-P",
      "OCRA-1:HOTP-SHA1-6:QN08-PSHA2", "OCRA-1:HOTP-SHA1-6:QN08-T1M-S064", "OCRA-1:HOTP-SHA1-6:QN08-S064-PSHA1",
      "OCRA-1:HOTP-SHA1-6:QN08-C", "OCRA-1:HOTP-SHA1-6:QN08 ", "OCRA-1:HOTP-SHA1-6:QN08-", " OCRA-1:HOTP-SHA1-6:QN08",
    ])
  func refused(_ text: String) {
    #expect(OCRASuite(text) == nil)
  }

  @Test("what a suite says is found in it")
  func parts() throws {
    let suite = try #require(OCRASuite("OCRA-1:HOTP-SHA512-10:C-QA64-PSHA1-S064-T48H"))
    #expect(suite.hash == .sha512)
    #expect(suite.length?.digits == 10)
    #expect(suite.hasCounter)
    #expect(suite.questionFormat == .alphanumeric)
    #expect(suite.questionLength == 64)
    #expect(suite.pinHash == .sha1)
    #expect(suite.sessionByteCount == 64)
    #expect(suite.timeStepSeconds == 172_800)
  }
}
