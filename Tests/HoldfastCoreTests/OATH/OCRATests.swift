import HoldfastCore
import TestSupport
import Testing

/// Inputs that the RFC's tables do not reach. The answers are those of `Tests/Interop/holdfast_peer/oath.py`, which shares no
/// code with this.
struct OCRATests {
  private let key = Array("12345678901234567890".utf8)

  @Test(
    "a question is written as the RFC's reference writes it",
    arguments: [
      ("QH40", "abc", "77697926"), ("QH40", "ABC0", "77697926"),
      ("QN64", String(repeating: "9", count: 64), "59744452"),
      ("QN64", String(repeating: "9", count: 128), "31627150"), ("QN08", "00000000", "39203150"),
      ("QN08", "0", "39203150"), ("QN08", "4096", "55789227"), ("QN08", "65536", "55789227"),
      ("QN08", "00065536", "55789227"), ("QA64", String(repeating: "~ ", count: 64), "97460175"),
    ])
  func questions(format: String, question: String, answer: String) throws {
    #expect(try example("OCRA-1:HOTP-SHA1-8:\(format)", question).code() == answer)
  }

  @Test("the bytes of a question stand on the left")
  func questionBytes() throws {
    for (format, question, bytes) in [
      ("QN08", "12345678", "bc614e"), ("QN08", "15", "f0"), ("QN08", "0", ""), ("QH08", "aBc", "abc0"),
      ("QH08", "0aBc", "0abc"), ("QA08", "a 0", "612030"),
    ] {
      let suite = try #require(OCRASuite("OCRA-1:HOTP-SHA1-6:\(format)"))
      let read = try #require(OCRAQuestion(question, for: suite))
      #expect(hex(read.bytes.bytes) == bytes + String(repeating: "0", count: 256 - bytes.count))
    }
  }

  @Test(
    "what is no question of the suite is refused",
    arguments: [
      ("QN08", ""), ("QN08", "1234567a"), ("QN08", " 1234567"), ("QN08", "+1234567"), ("QN08", "12345678901234567"),
      ("QH08", ""), ("QH08", "0x12"), ("QH08", "12g4"), ("QH08", "00000000000000000"), ("QA08", ""), ("QA08", "a\n"),
      ("QA08", "\u{7f}"), ("QA08", "caf\u{e9}"), ("QA08", "SRV11110CLI222200"),
      ("QA64", String(repeating: "a", count: 129)),
    ])
  func noQuestions(format: String, question: String) throws {
    let suite = try #require(OCRASuite("OCRA-1:HOTP-SHA1-6:\(format)"))
    #expect(OCRAQuestion(question, for: suite) == nil)
  }

  @Test("session information has zeros in front")
  func session() throws {
    var example = try example("OCRA-1:HOTP-SHA1-8:QN08-S512", "1")
    example.session = Array("session".utf8)
    #expect(try example.code() == "97716161")
    example.session = [UInt8](repeating: 0, count: 505) + Array("session".utf8)
    #expect(try example.code() == "97716161")
    var empty = try self.example("OCRA-1:HOTP-SHA1-8:QN08-S064", "1")
    empty.session = []
    #expect(try empty.code() == "11446720")
  }

  @Test("the longest of everything fits")
  func longest() throws {
    var example = try example("OCRA-1:HOTP-SHA512-10:C-QA64-PSHA512-S512-T48H", String(repeating: "~", count: 128))
    example.counter = .max
    example.pin = "1234"
    example.session = [UInt8](repeating: 0xff, count: 512)
    example.timeStep = .max
    #expect(try example.code() == "0347897957")
  }

  @Test("an empty PIN is hashed like any other")
  func emptyPIN() throws {
    var example = try example("OCRA-1:HOTP-SHA256-4:QH64-PSHA256", String(repeating: "f", count: 64))
    example.pin = ""
    #expect(try example.code() == "0902")
  }

  @Test("a suite of no digits has the whole HMAC, and no code")
  func noDigits() throws {
    var example = try example("OCRA-1:HOTP-SHA256-0:QH64-T1M", "0")
    example.timeStep = 7
    let whole = "6128ad5c28a8ff42ce9088dd2375b9c38e0fab7cdaa9bcd609424573713b870e"
    #expect(try example.untruncated() == whole)
    #expect(throws: OCRAFault.noTruncation) { try example.code() }
  }

  @Test(
    "inputs that the suite lacks are missed, and others are refused",
    arguments: [OCRAInputName.counter, .pin, .session, .time])
  func inputs(_ name: OCRAInputName) throws {
    var full = try example("OCRA-1:HOTP-SHA1-6:C-QN08-PSHA1-S008-T1M", "1")
    full.counter = 1
    full.pin = "1234"
    full.session = [1]
    full.timeStep = 1
    _ = try full.code()
    var bare = try example("OCRA-1:HOTP-SHA1-6:QN08", "1")
    _ = try bare.code()
    switch name {
    case .counter: (full.counter, bare.counter) = (nil, 1)
    case .pin: (full.pin, bare.pin) = (nil, "1234")
    case .session: (full.session, bare.session) = (nil, [1])
    case .time: (full.timeStep, bare.timeStep) = (nil, 1)
    }
    #expect(throws: OCRAFault.missingInput(name)) { try full.code() }
    #expect(throws: OCRAFault.missingInput(name)) { try full.untruncated() }
    #expect(throws: OCRAFault.unexpectedInput(name)) { try bare.code() }
    #expect(throws: OCRAFault.unexpectedInput(name)) { try bare.untruncated() }
  }

  @Test("session information longer than the suite says is refused")
  func longSession() throws {
    var example = try example("OCRA-1:HOTP-SHA1-6:QN08-S008", "1")
    example.session = [UInt8](repeating: 1, count: 8)
    _ = try example.code()
    example.session = [UInt8](repeating: 1, count: 9)
    #expect(throws: OCRAFault.sessionTooLong) { try example.code() }
  }

  private func example(_ suiteText: String, _ questionText: String) throws -> OCRAExample {
    let suite = try #require(OCRASuite(suiteText))
    return OCRAExample(suite: suite, key: key, question: try #require(OCRAQuestion(questionText, for: suite)))
  }
}
