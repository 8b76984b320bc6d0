import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import TestSupport
import Testing

import HoldfastUser

/// A user's answer to a real device's request for a seal, from the request to the device's confirmation.
@Suite struct SealRequestExchangeTests {
  private let ann = BoundedText<32>("ann" as StaticString)

  private func answer(_ lock: ServedLock, _ seal: Code, _ parameter: String = "7") throws -> ProofOutcome {
    var request = Request(command: BoundedText("open-safe" as StaticString))
    try request.append(parameter: try #require(BoundedText(parameter)))
    request.codes[.seal] = UserCode(user: ann, code: try #require(BoundedText(seal.text)))
    return try lock.prover.prove(request, at: lock.endpoint)
  }

  @Test func `a request is approved and carried out, or rejected and recorded as that`() throws {
    let lock = try ServedLock(policy: ServedLock.withSealRequests)
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    try user.activate(with: lock.activation(of: ann), at: lock.endpoint, protection: .none)
    let sealed = try SealRequest(command: "open-safe", parameters: ["7"])
    let received = try AuthenticatorUser.sealRequest(for: "ann", over: sealed, as: lock.prover, at: lock.endpoint)
    #expect(received.device == lock.descriptor.deviceID && received.text.hasPrefix("holdfast-seal:1?"))
    let authenticator = try AuthenticatorFolder.open(at: user.authenticator)
    let clock = SystemClock()
    let request = try authenticator.check(Array(received.text.utf8), clock: clock)
    #expect(request.text == "Open safe 7" && request.sealed == sealed)
    let refused = try answer(lock, authenticator.reject(request, with: .none, clock: clock))
    #expect(refused.verdict.status == .sealRejected && refused.isRefusalRecorded)
    #expect(refused.verdict.notice.refusal == .refusedByUser)
    guard case .failed(let failure) = try lock.lastEvents(1)[0] else {
      Issue.record("no entry")
      return
    }
    #expect(failure.reason == .refusedByUser)
    let approval = try authenticator.approve(request, with: .none, clock: clock)
    let accepted = try answer(lock, approval)
    #expect(accepted.verdict.status == .accepted && !accepted.isRefusalRecorded)
    let again = try answer(lock, approval)
    #expect(again.verdict.notice.refusal == .codeUsed && !again.isRefusalRecorded)
    do throws(UserExchangeError) {
      _ = try AuthenticatorUser.sealRequest(for: "ann", over: sealed, as: lock.prover, at: lock.endpoint)
      Issue.record("replaced within a minute")
    } catch {
      guard case .notAccepted(let outcome) = error else { throw error }
      #expect(outcome.verdict.notice.refusal == .challengePending)
    }
  }

  @Test func `a task can ask, too`() async throws {
    let lock = try ServedLock(policy: ServedLock.withSealRequests)
    try await AuthenticatorUser(authenticator: lock.folder.file("keys"))
      .activate(with: lock.activation(of: ann), at: lock.endpoint, protection: .none)
    let sealed = try SealRequest(command: "open-safe", parameters: [])
    let received = try await AuthenticatorUser.sealRequest(for: "ann", over: sealed, as: lock.prover, at: lock.endpoint)
    #expect(received.text.contains("&c=open-safe&i="))
  }

  @Test func `an unknown user, and a command that needs no seal, give no request`() throws {
    let lock = try ServedLock(policy: ServedLock.withSealRequests)
    func fault(_ user: String, _ command: String) -> UserExchangeError? {
      do throws(UserExchangeError) {
        let sealed: SealRequest
        do throws(SealFault) { sealed = try SealRequest(command: command, parameters: []) } catch { return nil }
        _ = try AuthenticatorUser.sealRequest(for: user, over: sealed, as: lock.prover, at: lock.endpoint)
        return nil
      } catch { return error }
    }
    guard case .unknownUser? = fault("nobody", "open-safe") else {
      Issue.record("unknown user")
      return
    }
    guard case .notAccepted(let outcome)? = fault("ann", "unlock") else {
      Issue.record("no seal")
      return
    }
    #expect(outcome.verdict.notice.refusal == .notInPolicy)
  }
}
