import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport
import TestSupport
import Testing

import HoldfastUser

/// Passwords that the authenticator makes while the app proves itself to a real device, and the check of a PIN by them.
@Suite struct PasswordExchangeTests {
  private let lock: ServedLock
  private let user: AuthenticatorUser
  private let challenged = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QH64")!)

  init() throws {
    lock = try ServedLock()
    user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
  }

  private func pin(_ digits: String) throws -> ProtectionSecret { .pin(try PIN(Array(digits.utf8).span)) }

  private func request(_ command: StaticString = "configure") -> Request { Request(command: BoundedText(command)) }

  private func record(of name: String = "ann", _ purpose: RecordPurpose = .otp) throws -> Record {
    try AuthenticatorFolder.open(at: user.authenticator).record(user: name, purpose: purpose)
  }

  @Test func `a password over a challenge is made and accepted on one connection, at an endpoint or over a channel`()
    throws
  {
    try user.activate(with: lock.activation(of: ann, otp: challenged), at: lock.endpoint, protection: pin("482915"))
    let atEndpoint = try user.prove(
      request(), withPasswordOf: record(), under: pin("482915"), as: lock.prover, at: lock.endpoint)
    #expect(atEndpoint.verdict.status == .accepted)
    let channel = try Connection.connect(to: lock.endpoint, timeoutMilliseconds: 5000)
    let overChannel = try user.prove(
      request(), withPasswordOf: record(), under: pin("482915"), as: lock.prover, over: channel)
    #expect(overChannel.verdict.status == .accepted)
    let wrong = try user.prove(
      request(), withPasswordOf: record(), under: pin("482916"), as: lock.prover, over: channel)
    #expect(wrong.verdict.status == .otpRejected)
  }

  @Test func `the challenge of another connection is worth nothing`() throws {
    try user.activate(with: lock.activation(of: ann, otp: challenged), at: lock.endpoint, protection: .none)
    let challenge = try #require(
      try user.challengeDevice(with: record(.host), as: lock.prover, at: lock.endpoint))
    let folder = try AuthenticatorFolder.open(at: user.authenticator)
    let code = try folder.code(for: record(), with: .none, challenge: challenge.digits, clock: SystemClock())
    var request = request()
    request.codes[.otp] = UserCode(user: ann, code: try #require(BoundedText(code.text)))
    let outcome = try lock.prover.prove(request, at: lock.endpoint)
    #expect(outcome.verdict.status == .otpRejected && outcome.verdict.notice.refusal == .noChallenge)
    #expect(throws: AuthenticatorFault.badQuestion) {
      try folder.code(for: record(), with: .none, challenge: "123", clock: SystemClock())
    }
  }

  @Test func `no password is made for a device that does not know the user's secrets`() throws {
    try user.activate(with: lock.activation(of: ann, otp: challenged), at: lock.endpoint, protection: .none)
    // Another authenticator takes the place of this one.
    try AuthenticatorUser(authenticator: lock.folder.file("others")).activate(
      with: lock.activation(of: ann, otp: challenged, replaces: true), at: lock.endpoint, protection: .none)
    do {
      _ = try user.prove(request(), withPasswordOf: record(), under: .none, as: lock.prover, at: lock.endpoint)
      Issue.record("a password was made")
    } catch let error as UserExchangeError { guard case .wrongHostCode = error else { throw error } }
  }

  @Test func `a second user gets the PIN of the first one only after the device has checked it`() throws {
    try user.activate(with: lock.activation(of: ann), at: lock.endpoint, protection: pin("482915"))
    let before = try AuthenticatorFolder.open(at: user.authenticator).records()
    var text: [UInt8] = []
    try lock.activation(of: bob).write(into: &text)
    func share(_ digits: String, _ command: StaticString = "configure") throws -> UserExchangeError? {
      do {
        let shared = try user.activate(
          with: OneUseCode(text.span)!, at: lock.endpoint, sharing: pin(digits), of: record(),
          checkedWith: request(command), as: lock.prover)
        #expect(shared.user == "bob")
        return nil
      } catch let error as UserExchangeError { return error }
    }
    guard case .notAccepted(let outcome)? = try share("482916"), outcome.verdict.status == .otpRejected else {
      Issue.record("a wrong PIN was taken")
      return
    }
    guard case .nothingChecked? = try share("482915", "unlock") else {
      Issue.record("a command without a password checked a PIN")
      return
    }
    guard case .notAccepted(let sealed)? = try share("482915", "open-safe"), sealed.verdict.status == .factorMissing
    else {
      Issue.record("a command with a seal checked a PIN")
      return
    }
    let now = try AuthenticatorFolder.open(at: user.authenticator).records(user: "bob")
    #expect(now.isEmpty && before.map(\.index) == [1, 2, 3])
    #expect(try share("482915") == nil)
    let both = try user.prove(
      request(), withPasswordOf: record(of: "bob"), under: pin("482915"), as: lock.prover, at: lock.endpoint)
    #expect(both.verdict.status == .accepted)
  }

  @Test func `an activation under a PIN that exists is only for the device that checked it`() throws {
    try user.activate(with: lock.activation(of: ann), at: lock.endpoint, protection: pin("482915"))
    let other = try ServedLock()
    do {
      try user.activate(
        with: other.activation(of: bob), at: other.endpoint, sharing: pin("482915"), of: record(),
        checkedWith: request(), as: other.prover)
      Issue.record("another device took part")
    } catch is UserExchangeError {}
    #expect(try AuthenticatorFolder.open(at: user.authenticator).users() == ["ann"])
  }
}
