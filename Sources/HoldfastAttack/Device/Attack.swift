import HoldfastCore
import HoldfastFormats

/// One attack on a device: an honest prover's round, or the contact of a stranger, with one thing changed.
///
/// The texts stand in the table because each belongs to what its function does.
package struct Attack: Sendable {
  /// The requirements of an attack. Without them it is not tried.
  struct Needs: OptionSet {
    let rawValue: UInt16
    /// It uses up uses or codes, could move the clock floor, or locks a user out.
    static let destruction = Needs(rawValue: 1)
    /// The key of an issuer that the device trusts.
    static let issuer = Needs(rawValue: 2)
    /// A user of the device.
    static let user = Needs(rawValue: 4)
    /// Rounds that are accepted, without using up a token.
    static let acceptance = Needs(rawValue: 8)
    /// Connections that begin and end, not one line.
    static let connections = Needs(rawValue: 16)
    /// A transport on which each message is one packet.
    static let packets = Needs(rawValue: 32)
    /// A transport that carries a stream of bytes.
    static let stream = Needs(rawValue: 64)
    /// The public key of an issuer that the device trusts.
    static let issuerPoint = Needs(rawValue: 128)
    /// Several connections at once.
    static let crowd = Needs(rawValue: 256)
    /// A device that takes tokens in JOSE, as far as is known.
    static let jose = Needs(rawValue: 512)
  }

  /// The identifier, which stays the same.
  package let id: String
  /// The adversary's action: one sentence.
  package let did: String
  /// The answer of a sound device.
  package let due: String
  let needs: Needs
  let play: @Sendable (inout Adversary) throws(AttackFault) -> Finding

  init(
    _ id: String, _ did: String, due: String, _ needs: Needs = [],
    play: @escaping @Sendable (inout Adversary) throws(AttackFault) -> Finding
  ) {
    (self.id, self.did, self.due, self.needs, self.play) = (id, did, due, needs, play)
  }

  /// Makes an attack that is one changed M2, which a sound device refuses with one of `statuses`.
  init(
    _ id: String, _ did: String, refused statuses: [Status], _ needs: Needs = [],
    change: @escaping @Sendable (inout Adversary, Line) throws(AttackFault) -> [UInt8]
  ) {
    self.init(id, did, due: Self.text(of: statuses), needs) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let message = try change(&adversary, line)
      return Finding(adversary.exchange(message, on: line), refused: statuses)
    }
  }

  /// Makes an attack whose M2 is sent, and whose answer is read with the keys of the round.
  init(
    _ id: String, _ did: String, refused statuses: [Status], _ needs: Needs = [],
    draft: @escaping @Sendable (inout Adversary, Line) throws(AttackFault) -> Draft
  ) {
    self.init(id, did, due: Self.text(of: statuses), needs) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let draft = try draft(&adversary, line)
      return Finding(adversary.exchange(draft, on: line), refused: statuses)
    }
  }

  static func text(of statuses: [Status]) -> String {
    statuses.map { "\($0.name), \($0.needsAuthentication ? "sealed" : "without a seal")" }.joined(separator: "; or ")
  }
}

/// The judgement of an attack.
package enum Judgement: Sendable, Equatable {
  /// The device answered as a sound one does.
  case sound
  /// It did not.
  case unsound
  /// The attack was not tried, for this reason.
  case notTried(String)

  /// The word for programs.
  package var word: String {
    switch self {
    case .sound: "sound"
    case .unsound: "unsound"
    case .notTried: "not tried"
    }
  }
}

/// The observation of an attack.
struct Finding {
  var observed: String
  var isSound: Bool

  init(_ observed: String, isSound: Bool) {
    (self.observed, self.isSound) = (observed, isSound)
  }

  /// Judges a reply where a refusal with one of `statuses` is due.
  init(_ reply: Reply, refused statuses: [Status]) {
    self.init(reply.text, isSound: reply.refuses(with: statuses))
  }

  /// Judges several replies, all of which must be such refusals. The first that is not is shown.
  init(_ replies: [Reply], refused statuses: [Status]) {
    let shown = replies.first { !$0.refuses(with: statuses) } ?? replies.last ?? .silence
    self.init(shown, refused: statuses)
  }
}

/// The result of one attack.
package struct AttackResult: Sendable {
  /// The attack.
  package let attack: Attack
  /// The answer that was seen; empty if the attack was not tried.
  package let observed: String
  /// The judgement.
  package let judgement: Judgement
  /// The time that the attack took, in milliseconds.
  package let milliseconds: UInt64
}

/// All attacks on a device, in the order in which they are run.
///
/// Those that change what later ones see come last: a lockout, and floods. Those with wrong proofs come late, since a line is slow from
/// the tenth on.
extension Attack {
  package static let all: [Attack] =
    rounds + messages + requests + mail + compatibility + proofs + references + tokens + forgeries + josePretences
    + issuers + joseTraps + users + slowPeers + strangers
}
