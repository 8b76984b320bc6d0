import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// One-time passwords over a challenge, which are good on one connection.
@Suite struct BoundPasswordsTests {
  private static let plain = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QH64")!)
  private static let numeric = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA1-6:QN08")!)
  private static let counted = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:C-QA16")!)
  private static let timed = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QH16-T1M")!)

  /// A device of whose users `ann` is one, whose passwords are of this method, and her secrets.
  private func activated(_ method: CodeMethod) throws -> (TestDevice, [CodePurpose: [UInt8]]) {
    let device = try TestDevice()
    device.requireCodes()
    var visitor = TestVisitor()
    #expect(try visitor.use(try device.ledger.issue(otp: method, seal: challengeSealMethod), at: device.connect()))
    return (device, visitor.secrets)
  }

  /// The digits of the challenge that a connection gets for `ann`.
  private func challenge(_ device: TestDevice, on connection: TestConnection) throws -> String {
    let verdict = try connection.round(device.prover(), "host-code", parameters: ["ann", "0123456789abcdef"])
    return String(try #require(verdict.result).prefix { $0 != " " })
  }

  /// The password over a question, as an authenticator of another make computes it.
  private func password(
    _ method: CodeMethod, _ question: String, _ secrets: [CodePurpose: [UInt8]], _ position: UInt64 = 0
  ) throws -> UserCode {
    guard case .ocra(let suite) = method else { throw CryptographyFailure() }
    var cryptography = OpenSSLCryptography()
    let secret = try #require(secrets[.otp])
    let input = OCRAInput(
      counter: suite.hasCounter ? position : nil, question: try #require(OCRAQuestion(question, for: suite)),
      timeStep: suite.timeStepSeconds == nil ? nil : position)
    return UserCode(
      user: ann, code: try OCRA.code(suite: suite, key: secret.span, input: input, using: &cryptography))
  }

  @Test func `a password over the challenge of a connection is accepted there, once`() throws {
    let (device, secrets) = try activated(Self.plain)
    let connection = try device.connect()
    let code = try password(Self.plain, challenge(device, on: connection), secrets)
    #expect(try connection.round(device.prover(), otp: code).status == .accepted)
    let again = try connection.round(device.prover(), otp: code)
    #expect((again.status, again.result) == (.otpRejected, "noChallenge"))
    #expect(try device.record()?.failureCount == 0)
  }

  @Test func `on another connection the same password is not even compared`() throws {
    let (device, secrets) = try activated(Self.plain)
    let connection = try device.connect()
    let code = try password(Self.plain, challenge(device, on: connection), secrets)
    let elsewhere = try device.connect(number: 2, random: 2).round(device.prover(), otp: code)
    #expect((elsewhere.status, elsewhere.result) == (.otpRejected, "noChallenge"))
    #expect(try device.record()?.failureCount == 0 && device.record()?.challenge != nil)
    #expect(try connection.round(device.prover(), otp: code).status == .accepted)
  }

  @Test func `an empty frame on a line ends what a challenge before it permitted`() throws {
    let (device, secrets) = try activated(Self.plain)
    try device.folder.write(device.policy)
    let served = try ServedDevice(device, scheme: "unix-stream")
    let (peer, prover) = (try served.connect(), try device.prover())
    let asked = try prover.answer(
      try peer.challenge(), command: "host-code", parameters: ["ann", "0123456789abcdef"])
    try peer.send(asked.message)
    let verdict = try prover.open(try peer.receive(), after: asked)
    let code = try password(Self.plain, String(try #require(verdict.result).prefix { $0 != " " }), secrets)
    _ = try peer.challenge()
    try peer.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: TestPeer.patienceMilliseconds))
    #expect(throws: TransportError.emptyFrame) { try peer.receive() }
    let answer = try prover.answer(try peer.challenge(), command: "unlock", otp: code)
    try peer.send(answer.message)
    #expect(try prover.open(try peer.receive(), after: answer).result == "noChallenge")
    try served.stop()
  }

  @Test func `a connection whose challenge was replaced by another one gets nothing for it`() throws {
    let (device, secrets) = try activated(Self.plain)
    let (first, second) = (try device.connect(), try device.connect(number: 2, random: 2))
    let code = try password(Self.plain, challenge(device, on: first), secrets)
    device.clock.seconds = testTime + 60
    let later = try password(Self.plain, challenge(device, on: second), secrets)
    #expect(try first.round(device.prover(), otp: code).result == "noChallenge")
    #expect(try first.round(device.prover(), otp: later).result == "noChallenge")
    #expect(try second.round(device.prover(), otp: later).status == .accepted)
  }

  @Test func `a busy answer leaves the connection the challenge that it has`() throws {
    let (device, secrets) = try activated(Self.plain)
    let connection = try device.connect()
    let code = try password(Self.plain, challenge(device, on: connection), secrets)
    let busy = try connection.round(device.prover(), "host-code", parameters: ["ann", "0123456789abcdef"])
    #expect((busy.status, busy.result) == (.busy, "challengePending"))
    #expect(try connection.round(device.prover(), otp: code).status == .accepted)
  }

  @Test func `a challenge expires`() throws {
    let (device, secrets) = try activated(Self.plain)
    let connection = try device.connect()
    let code = try password(Self.plain, challenge(device, on: connection), secrets)
    device.clock.seconds = testTime + 300
    let late = try connection.round(device.prover(), otp: code)
    #expect((late.status, late.result) == (.otpRejected, "challengeExpired"))
  }

  @Test func `a wrong password is a failure and uses the challenge up`() throws {
    let (device, secrets) = try activated(Self.plain)
    let connection = try device.connect()
    let digits = try challenge(device, on: connection)
    let wrong = UserCode(user: ann, code: BoundedText("00000000"))
    let verdict = try connection.round(device.prover(), otp: wrong)
    #expect((verdict.status, verdict.result) == (.otpRejected, ""))
    #expect(try device.record()?.failureCount == 1 && device.record()?.challenge == nil)
    let late = try connection.round(device.prover(), otp: password(Self.plain, digits, secrets))
    #expect(late.result == "noChallenge")
  }

  @Test func `a number as the question has the last digits of the challenge in decimal`() throws {
    let (device, secrets) = try activated(Self.numeric)
    let connection = try device.connect()
    let number = String(try #require(UInt64(challenge(device, on: connection), radix: 16)))
    let code = try password(Self.numeric, String(number.suffix(8)), secrets)
    #expect(try connection.round(device.prover(), otp: code).status == .accepted)
  }

  @Test(arguments: [(counted, UInt64(3)), (timed, testTime / 60)])
  func `a counter and the time are used up, and need a challenge besides`(_ method: CodeMethod, _ position: UInt64)
    throws
  {
    let (device, secrets) = try activated(method)
    let connection = try device.connect()
    let digits = try challenge(device, on: connection)
    let elsewhere = try device.connect(number: 2, random: 2).round(
      device.prover(), otp: password(method, digits, secrets, position))
    #expect((elsewhere.status, elsewhere.result) == (.otpRejected, "noChallenge"))
    #expect(try connection.round(device.prover(), otp: password(method, digits, secrets, position)).status == .accepted)
    #expect(try device.record()?.accounts[.otp]?.nextPosition == position + 1)
    device.clock.seconds = testTime + 1
    let fresh = try challenge(device, on: connection)
    let used = try connection.round(device.prover(), otp: password(method, fresh, secrets, position))
    #expect((used.status, used.result) == (.otpRejected, ""))
  }

  @Test func `a seal is no password, a password no seal, even if both had one secret`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add(otp: Self.plain, seal: challengeSealMethod)
    let connection = try device.connect()
    _ = try connection.round(device.prover(), "host-code", parameters: ["ann", "0123456789abcdef"])
    let issued = try #require(try device.record()?.challenge)
    let sealed = try seal(challengeSealMethod, challenge: Array(issued.bytes), "unlock")
    #expect(try connection.round(device.prover(), otp: sealed).status == .otpRejected)
    device.clock.seconds = testTime + 60
    _ = try connection.round(device.prover(), "host-code", parameters: ["ann", "0123456789abcdef"])
    let next = try #require(try device.record()?.challenge)
    let code = try password(Self.plain, hex(Array(next.bytes)), [.otp: usersSecret])
    #expect(try connection.round(device.prover(), "lock", seal: code).status == .sealRejected)
  }

  @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
  func `one challenge serves a password and a seal of the same round, once`(isCodeRight: Bool, isSealRight: Bool)
    throws
  {
    let (device, secrets) = try activated(Self.plain)
    device.policy.commands[BoundedText("lock")]?.factors = [.device, .otp, .seal]
    let connection = try device.connect()
    let digits = try challenge(device, on: connection)
    let issued = try #require(try device.record()?.challenge)
    let sealed = try seal(
      challengeSealMethod, challenge: Array(issued.bytes), isSealRight ? "lock" : "unlock",
      secret: #require(secrets[.seal]))
    let code = try password(Self.plain, isCodeRight ? digits : String(digits.reversed()), secrets)
    let first = try connection.round(device.prover(), "lock", otp: code, seal: sealed)
    #expect(first.status == (isCodeRight ? isSealRight ? .accepted : .sealRejected : .otpRejected))
    #expect(try device.record()?.failureCount == (isCodeRight && isSealRight ? 0 : 1))
    #expect(try device.record()?.challenge == nil)
    let again = try connection.round(device.prover(), "lock", otp: code, seal: sealed)
    #expect((again.status, again.result) == (.otpRejected, "noChallenge"))
  }

  @Test func `suites with room for a challenge make passwords, on a device that is no board`() throws {
    for suite in ["QH16", "QH64", "QA16", "QN08", "C-QH64", "QH40-T30S"] {
      #expect(CodeAccount.canVerify(.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:\(suite)")!), for: .otp), "\(suite)")
    }
    for suite in ["QH15", "QA15", "QN07", "C-QH64-T1M", "QH64-PSHA1", "QH64-S064"] {
      #expect(!CodeAccount.canVerify(.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:\(suite)")!), for: .otp), "\(suite)")
    }
    #expect(!CodeAccount.canVerify(.ocra(OCRASuite("OCRA-1:HOTP-SHA256-0:QH64")!), for: .otp))
  }
}
