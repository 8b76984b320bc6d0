import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// The running of the attacks, one after the other.
extension Adversary {
  /// On a line, an honest round follows every so many attacks, since each answer takes a second once proofs have failed.
  private static let lineControlInterval = 10

  /// Runs attacks, each on a new connection, with an honest round after it.
  ///
  /// - Parameters:
  ///   - attacks: the attacks; the last ones are the slowest.
  ///   - report: is given each result at once, with its index.
  package mutating func run(_ attacks: [Attack], report: (AttackResult, Int) -> Void) {
    if isLine { isLine = !servesSeveral() }
    if mayCrowd, attacks.contains(where: { $0.id == LateAnswer.attackID }) { waiting = try? prepareLateAnswer() }
    for (index, attack) in attacks.enumerated() {
      var stopwatch = Stopwatch()
      hasSeenRepetition = false
      var (judgement, observed) = judge(attack)
      let isControlled =
        !isLine || index % Self.lineControlInterval == Self.lineControlInterval - 1 || index == attacks.count - 1
      if isControlled, judgement == .sound || judgement == .unsound {
        let reply: String
        (isServing, reply) = isServed()
        if !isServing {
          judgement = .unsound
          observed += "; afterwards an honest prover got \(reply)"
        }
      }
      if hasSeenRepetition, judgement == .sound {
        judgement = .unsound
        observed += "; a challenge came again after it had been answered"
      }
      report(
        AttackResult(
          attack: attack, observed: observed, judgement: judgement, milliseconds: stopwatch.lap() / 1_000_000), index)
    }
  }

  /// Plays an attack. If the device served nobody after an earlier one, and still does not, this one is not tried.
  private mutating func judge(_ attack: Attack) -> (Judgement, String) {
    if attack.needs.contains(.jose), joseReply == nil { joseReply = honestReplyToJOSE() }
    if let reason = missing(attack.needs) { return (.notTried(reason), "") }
    do throws(AttackFault) {
      let finding = try attack.play(&self)
      return (finding.isSound ? .sound : .unsound, finding.observed)
    } catch {
      switch error {
      case .notTried(let reason): return (.notTried(reason), "")
      case .cryptography: return (.notTried(error.observation), "")
      case _ where !isServing: return (.notTried("since an earlier attack, \(error.observation)"), "")
      default: return (.unsound, error.observation)
      }
    }
  }

  /// Returns whether a second peer is served while another one is connected, as a server does at a stream socket.
  private func servesSeveral() -> Bool {
    guard case .socket = endpoint.address,
      let first = try? Connection.connect(to: endpoint, timeoutMilliseconds: 500),
      let second = try? Connection.connect(to: endpoint, timeoutMilliseconds: 500)
    else { return false }
    defer { withExtendedLifetime(first) {} }
    let arrived = try? second.receive(by: Deadline(afterMilliseconds: 500), wholeWithin: 500)
    return arrived.map { (try? Challenge($0.bytes.span)) != nil } ?? false
  }

  /// Presents an honest token in JOSE, since a device may be made without them.
  ///
  /// - Returns: the verdict; nil if there is no such token, or no verdict on it.
  private mutating func honestReplyToJOSE() -> Reply? {
    if encoding == .jose { return .verdict(honestStatus, .right) }
    guard issuer != nil, let reply = try? present(.jose, isTrusted: true) else { return nil }
    guard case .verdict(let status, _, _) = reply, status != .busy else { return nil }
    return reply
  }

  /// Returns the reason why an attack with these needs is not tried; nil if it is.
  private func missing(_ needs: Attack.Needs) -> String? {
    if needs.contains(.destruction), !options.isDestructive { return "it is only for --destructive" }
    if needs.contains(.issuer), issuer == nil { return "it needs the issuer's key: --service" }
    if needs.contains(.issuerPoint), issuerPoint == nil { return "it needs the issuer's public key: --service" }
    // A device that seals its verdict, whichever it is, has opened the token.
    if needs.contains(.jose), let joseReply, !joseReply.isSealed {
      return "the device takes no tokens in JOSE: an honest one got \(joseReply.text)"
    }
    if needs.contains(.user), code == nil { return "it needs a user: --user and --otp" }
    if needs.contains(.acceptance), honestStatus != .accepted {
      return "honest rounds are not accepted, or would use up the token: --destructive"
    }
    if isLine, needs.contains(.connections) || needs.contains(.crowd) { return "a line serves one peer at a time" }
    if needs.contains(.crowd), !mayCrowd { return "RFCOMM has one connection between two adapters" }
    if needs.contains(.packets), endpoint.scheme.framing != .packets { return "it is about packets" }
    if needs.contains(.stream), endpoint.scheme.framing == .packets { return "packets arrive whole" }
    return nil
  }
}
