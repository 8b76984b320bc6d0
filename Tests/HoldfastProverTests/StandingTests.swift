import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastProver

/// Questions about an enrolment to its service, newer terms, and leaving.
@Suite struct StandingTests {
  private let place: TemporaryFolder
  private let prover: Prover
  private let lock: TestLock
  private let issuer: TermsIssuer
  private let device: DeviceID

  private static let issued: UInt64 = 1_790_000_000

  private struct Unreachable: Error {}

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    prover = Prover(state: place.file("phone"), keys: .default)
    (lock, issuer) = (try TestLock(), try TermsIssuer())
    device = lock.descriptor.deviceID
    try enroll()
  }

  private func enroll(replacing: Bool = false) throws {
    try prover.enroll(for: lock.descriptor, replacing: replacing) { evidence in
      let token = try lock.token(for: evidence)
      return MeasurementToken(token.bytes, terms: try terms(for: token.bytes, "a=1", after: 0))
    }
  }

  private func terms(for token: [UInt8], _ settings: String, after seconds: UInt64) throws -> [UInt8] {
    var conditions = Conditions()
    conditions.settings = AppSettings(.text, Array(settings.utf8))
    return try issuer.terms(for: token, conditions, issued: Self.issued + seconds)
  }

  private var token: [UInt8] {
    get throws { try prover.folder.requiredEntry(of: device).load().token }
  }

  private var settings: String? {
    get throws { try prover.status().first?.settings?.text }
  }

  private func answer(
    _ question: EnrolmentQuestion, _ status: String, terms: [UInt8]? = nil, _ others: [(String, JSONValue)] = []
  ) -> [UInt8] {
    let text = terms.map { [("terms", JSONValue.string(String(decoding: $0, as: UTF8.self)))] } ?? []
    let members: [(String, JSONValue)] = [
      ("token", .string(hexadecimal(question.tokenDigest))), ("status", .string(status)), ("expires", .integer(99)),
    ]
    return JSONValue.object(members + text + others).compact()
  }

  @Test func `a service is asked by device, token and fresh evidence, and its newer terms are taken over`() throws {
    let newer = try terms(for: token, "a=2", after: 60)
    var questions: [EnrolmentQuestion] = []
    for isNew in [true, false] {
      let standing = try prover.refresh(device) { question in
        questions.append(question)
        return answer(question, "valid", terms: newer, [("more", .bool(true))])
      }
      #expect((standing.status, standing.expires, standing.changesSettings) == (.valid, 99, isNew))
      #expect(try settings == "a=2")
    }
    let question = try #require(questions.first)
    #expect(question.device == device)
    #expect(try question.tokenDigest == Terms.digest(of: token))
    #expect(questions[0].evidence != questions[1].evidence)
    // The evidence is that of the app, which gets a token for it.
    #expect(try !lock.token(for: question.evidence).bytes.isEmpty)
    let body = try JSONValue(parsing: question.body, byteLimit: 131_072)
    #expect(body.members?.map(\.0) == ["evidence", "device", "token"])
    let evidence = try decodePublicPaddedBase64(try #require(body["evidence"]?.text))
    #expect(evidence == question.evidence)
    #expect(body["device"]?.text == hexadecimal(device))
    #expect(body["token"]?.text == hexadecimal(question.tokenDigest))
  }

  @Test(arguments: [
    ("expired", EnrolmentStanding.Status.expired), ("revoked", .revoked), ("left", .left), ("superseded", .superseded),
    ("blocked", .blocked), ("parked", .other(BoundedText("parked"))),
  ])
  func `a token that is not good any more is no error, and brings no terms`(
    name: String, status: EnrolmentStanding.Status
  ) throws {
    let newer = try terms(for: token, "a=2", after: 60)
    let standing = try prover.refresh(device) { answer($0, name, terms: newer) }
    #expect((standing.status, standing.changesSettings, standing.status.name) == (status, false, name))
    #expect(try settings == "a=1")
  }

  @Test func `an answer of another form, or about another token, is none`() throws {
    let token = try token
    func isMalformed(_ change: (EnrolmentQuestion) throws -> [UInt8]) -> Bool {
      let error = #expect(throws: ProverError.self) { try prover.refresh(device, exchange: change) }
      if case .malformedAnswer = error { return true } else { return false }
    }
    let newer = try terms(for: token, "a=2", after: 60)
    for bytes in [[], Array("{}".utf8), Array("[]".utf8), [UInt8](repeating: 0x20, count: 65_537)] {
      #expect(isMalformed { _ in bytes })
    }
    for status in ["", String(repeating: "a", count: 33)] {
      #expect(isMalformed { answer($0, status, terms: newer) })
    }
    #expect(isMalformed { answer($0, "valid", [("terms", .null)]) })
    for name in ["token", "status", "expires"] {
      #expect(
        isMalformed { question in
          let whole = try JSONValue(parsing: answer(question, "valid", terms: newer), byteLimit: 65_536)
          return JSONValue.object((whole.members ?? []).filter { $0.0 != name }).compact()
        })
    }
    #expect(
      isMalformed { question in
        let whole = String(decoding: answer(question, "valid", terms: newer), as: UTF8.self)
        let digest = hexadecimal(question.tokenDigest)
        return Array("{\"token\":\"\(String(digest.reversed()))\"".utf8) + whole.utf8.dropFirst(75)
      })
    #expect(try settings == "a=1")
  }

  @Test func `terms of another issuer are refused, an error on the way is thrown, and nothing changes`() throws {
    let stranger = try TermsIssuer().terms(for: token, Conditions(), issued: Self.issued + 60)
    guard case .badTerms = stateFault({ _ = try prover.refresh(device) { answer($0, "valid", terms: stranger) } })
    else { return #expect(Bool(false)) }
    #expect(throws: Unreachable.self) { try prover.refresh(device) { _ in throw Unreachable() } }
    #expect(try settings == "a=1")
    let other = try TestLock(id: 8).descriptor.deviceID
    let fault = stateFault {
      _ = try prover.refresh(other) { _ in
        Issue.record("it is not enrolled")
        return []
      }
    }
    guard case .notEnrolled = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `a prover that leaves tells the service, and has no enrolment any more`() throws {
    let digest = try Terms.digest(of: token)
    let result = try prover.leave(device) { question in
      #expect(question.tokenDigest == digest)
      return answer(question, "left")
    }
    #expect(try result.get().status == .left)
    guard case .nothingEnrolled = stateFault({ _ = try prover.status() }) else { return #expect(Bool(false)) }
    #expect(throws: ProverError.self) {
      try prover.leave(device) { _ in
        Issue.record("there is nothing to tell")
        return []
      }
    }
  }

  @Test func `an enrolment is removed also if its service cannot be told, and the reason is returned`() throws {
    guard case .failure(let error) = try prover.leave(device, exchange: { _ in throw Unreachable() }) else {
      return #expect(Bool(false))
    }
    #expect(error is Unreachable)
    #expect(throws: ProverError.self) { try prover.status() }
    // Of a damaged enrolment, the token is not known.
    try enroll()
    try Files.removeFile(at: prover.folder.folder(of: device).file(EnrolmentFolder.configurationName))
    let damaged = try prover.leave(device) { _ in
      Issue.record("there is no token to tell of")
      return []
    }
    let fault = stateFault { _ = try damaged.get() }
    guard case .missing = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    #expect(throws: ProverError.self) { try prover.status() }
  }

  @Test func `an enrolment that another process has replaced stays, and its token is not given back`() throws {
    let before = try token
    let during = stateFault {
      _ = try prover.leave(device) { question in
        try enroll(replacing: true)
        return answer(question, "left")
      }
    }
    guard case .replaced(device) = during else { return #expect(Bool(false), "\(String(describing: during))") }
    #expect(try token != before)
    let earlier = stateFault {
      _ = try prover.leave(device, holding: before) { _ in
        Issue.record("the newer token is not given back")
        return []
      }
    }
    guard case .replaced(device) = earlier else { return #expect(Bool(false), "\(String(describing: earlier))") }
    #expect(try prover.status().count == 1)
  }
}
