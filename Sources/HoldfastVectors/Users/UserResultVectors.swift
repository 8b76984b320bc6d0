import HoldfastCore
import HoldfastOpenSSL
import HoldfastUser

/// The vectors `UserSyncResult`: results of `user-sync`. Source: docs/protocol.md, Commands of users.
struct UserSyncVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    do throws(UserExchangeError) {
      return try UserPositions(message) == nil ? .refused("unknown user") : .accepted
    } catch { return .refused("malformed") }
  }
}

/// The vectors `UserStateResult`: results of `user-state`. Source: docs/protocol.md, Commands of users.
struct UserStateVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    do throws(UserExchangeError) { _ = try UserLockState(message) } catch { return .refused("malformed") }
    return .accepted
  }
}

/// The vectors `HostCodeResult`: results of `host-code`, which answer a user's challenge.
///
/// Source: docs/protocol.md, Commands of users; RFC 6287 §7.2.
struct HostCodeVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let key = try test.bytes("secret")
    let challenge = try test.node.member("challenge").text()
    let given = try test.bytes("answer")
    let expected = test.result == .invalid ? nil : try test.node.member("deviceChallenge").text()
    guard let answer = HostAnswer(given) else { return .refused("not two words") }
    let asked = Array((challenge + answer.challenge.digits).utf8)
    guard let question = OCRAQuestion(asked.span, for: .host) else { return .refused("question") }
    var cryptography = OpenSSLCryptography()
    do throws(OCRAFault) {
      let code = try OCRA.code(
        suite: .host, key: key.span, input: OCRAInput(question: question), using: &cryptography)
      guard code.description == answer.code else { return .refused("code differs") }
    } catch { return .refused("\(error)") }
    return expected == nil || expected == answer.challenge.digits ? .accepted : .differs("deviceChallenge")
  }
}
