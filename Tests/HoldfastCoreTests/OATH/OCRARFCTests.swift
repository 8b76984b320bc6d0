import HoldfastCore
import HoldfastOpenSSL
import Testing

/// The values of RFC 6287 appendix C.
struct OCRARFCTests {
  /// The time of every value with `T`: 25 March 2008, 12:06:30 UTC.
  private static let timeStep: UInt64 = 0x132d0b6

  @Test("C.1: one-way, a numeric question")
  func oneWay() throws {
    let codes = [
      "237653", "243178", "653583", "740991", "608993",
      "388898", "816933", "224598", "750600", "294470",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA1-6:QN08", String(repeating: "\(index)", count: 8)) == code)
    }
  }

  @Test("C.1: one-way, counter, question and PIN")
  func counterQuestionPIN() throws {
    let codes = [
      "65347737", "86775851", "78192410", "71565254", "10104329",
      "65983500", "70069104", "91771096", "75011558", "08522129",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1", "12345678", counter: UInt64(index), pin: "1234") == code)
    }
  }

  @Test("C.1: one-way, question and PIN")
  func questionPIN() throws {
    let codes = [
      "83238735", "01501458", "17957585", "86776967", "86807031",
    ]
    for (index, code) in codes.enumerated() {
      #expect(
        try answer("OCRA-1:HOTP-SHA256-8:QN08-PSHA1", String(repeating: "\(index)", count: 8), pin: "1234") == code)
    }
  }

  @Test("C.1: one-way, counter and question")
  func counterQuestion() throws {
    let codes = [
      "07016083", "63947962", "70123924", "25341727", "33203315",
      "34205738", "44343969", "51946085", "20403879", "31409299",
    ]
    for (index, code) in codes.enumerated() {
      #expect(
        try answer("OCRA-1:HOTP-SHA512-8:C-QN08", String(repeating: "\(index)", count: 8), counter: UInt64(index))
          == code)
    }
  }

  @Test("C.1: one-way, question and time")
  func questionTime() throws {
    let codes = [
      "95209754", "55907591", "22048402", "24218844", "36209546",
    ]
    for (index, code) in codes.enumerated() {
      #expect(
        try answer("OCRA-1:HOTP-SHA512-8:QN08-T1M", String(repeating: "\(index)", count: 8), timeStep: Self.timeStep)
          == code)
    }
  }

  @Test("C.2: mutual, what the server computes")
  func mutualServer() throws {
    let codes = [
      "28247970", "01984843", "65387857", "03351211", "83412541",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA256-8:QA08", "CLI2222\(index)SRV1111\(index)") == code)
    }
  }

  @Test("C.2: mutual, what the client computes")
  func mutualClient() throws {
    let codes = [
      "15510767", "90175646", "33777207", "95285278", "28934924",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA256-8:QA08", "SRV1111\(index)CLI2222\(index)") == code)
    }
  }

  @Test("C.2: mutual by SHA-512, what the server computes")
  func mutualServer512() throws {
    let codes = [
      "79496648", "76831980", "12250499", "90856481", "12761449",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA512-8:QA08", "CLI2222\(index)SRV1111\(index)") == code)
    }
  }

  @Test("C.2: mutual by SHA-512, what the client computes with a PIN")
  func mutualClientPIN() throws {
    let codes = [
      "18806276", "70020315", "01600026", "18951020", "32528969",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA512-8:QA08-PSHA1", "SRV1111\(index)CLI2222\(index)", pin: "1234") == code)
    }
  }

  @Test("C.3: a plain signature")
  func signature() throws {
    let codes = [
      "53095496", "04110475", "31331128", "76028668", "46554205",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA256-8:QA08", "SIG1\(index)000") == code)
    }
  }

  @Test("C.3: a timed signature")
  func timedSignature() throws {
    let codes = [
      "77537423", "31970405", "10235557", "95213541", "65360607",
    ]
    for (index, code) in codes.enumerated() {
      #expect(try answer("OCRA-1:HOTP-SHA512-8:QA10-T1M", "SIG1\(index)00000", timeStep: Self.timeStep) == code)
    }
  }

  /// The RFC's keys are the digits 1 to 9 and 0 in turn, as many as the hash has bytes.
  private func answer(
    _ suiteText: String, _ questionText: String, counter: UInt64? = nil, pin: String? = nil, timeStep: UInt64? = nil
  ) throws -> String {
    let suite = try #require(OCRASuite(suiteText))
    let question = try #require(OCRAQuestion(questionText, for: suite))
    let key = (0..<suite.hash.byteCount).map { UInt8(($0 + 1) % 10) + 0x30 }
    return try OCRAExample(
      suite: suite, key: key, counter: counter, question: question, pin: pin, timeStep: timeStep
    ).code()
  }
}
