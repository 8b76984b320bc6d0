import Glibc
import HoldfastCore

/// Attacks on a token that the device remembers: it was presented as a whole, and then stands behind a reference.
extension Attack {
  static let references: [Attack] = [
    remembered(
      "flip-reference", "One bit of the reference of a remembered token is flipped.", at: [0, 8, 15],
      refused: [.tokenUnknown]
    ) { (adversary, line, index) throws(AttackFault) -> Draft in
      try adversary.draft(
        on: line, as: adversary.persona, .reference, try adversary.reference(of: adversary.token).flipped(at: index))
    },
    remembered(
      "short-reference", "The reference of a remembered token is cut off.", at: [15, 8, 0],
      refused: [.malformed, .tokenUnknown, .tokenInvalid]
    ) { (adversary, line, count) throws(AttackFault) -> Draft in
      try adversary.draft(
        on: line, as: adversary.persona, .reference, Array(try adversary.reference(of: adversary.token).prefix(count)))
    },
    changed(
      "flip-device-proof-by-reference", "One bit of the device proof is flipped", at: [0, 16, 31],
      refused: [.deviceMismatch]
    ) { $0.deviceProof?[$1] ^= 1 },
    changed(
      "flip-integrity-proof-by-reference", "One bit of the integrity proof is flipped", at: [0, 16, 31],
      refused: [.integrityMismatch]
    ) { $0.integrityProof?[$1] ^= 1 },
    changed("no-device-proof-by-reference", "The device proof is left out", refused: [.deviceMismatch]) { (draft, _) in
      draft.deviceProof = nil
    },
    changed("flip-sealed-tag-by-reference", "One bit of the request's tag is flipped", refused: [.malformed]) {
      (draft, _) in draft.sealed[draft.sealed.count - 1] ^= 1
    },
    remembered(
      "no-integrity-proof-by-reference",
      "A command that needs the integrity proof is sent without it, by reference.",
      refused: [.factorMissing, .commandRefused]
    ) { (adversary, line, _) throws(AttackFault) -> Draft in
      var draft = try adversary.draftByReference(
        on: line, request: adversary.request(adversary.options.guarded))
      draft.integrityProof = nil
      return draft
    },
    persona("another-host-by-reference", "on a host with another device measurement", refused: [.deviceMismatch]) {
      Persona(proofKey: $0.proofKey.copy(), integrity: $0.integrity.copy(), device: $1.device.copy())
    },
    persona("changed-app-by-reference", "by a changed app", refused: [.integrityMismatch]) {
      Persona(proofKey: $0.proofKey.copy(), integrity: $1.integrity.copy(), device: $0.device.copy())
    },
    Attack(
      "replay-by-reference", "An honest M2 with a reference is sent again in the next round.",
      due: text(of: [.deviceMismatch]), .acceptance
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connectRemembered()
      let draft = try adversary.draftByReference(on: line)
      try adversary.checkRemembers(adversary.exchange(draft, on: line))
      try adversary.proceed(on: line)
      let reply = adversary.exchange(draft, on: line)
      try adversary.checkRemembers(reply)
      return Finding(reply, refused: [.deviceMismatch])
    },
    Attack(
      "wrong-proof-after-acceptance",
      "After an accepted round, the whole token comes with a wrong device proof on the same connection.",
      due: text(of: [.deviceMismatch]), .acceptance
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connectRemembered()
      var draft = try adversary.draft(on: line)
      draft.deviceProof?[0] ^= 1
      return Finding(adversary.exchange(draft, on: line), refused: [.deviceMismatch])
    },
    Attack(
      "uses-by-reference", "A trusted token for one use is used again, by reference.",
      due: text(of: [.usesExhausted, .tokenUnknown]), [.issuer, .acceptance]
    ) { (adversary) throws(AttackFault) in
      let issued = try adversary.acceptedToken { (plan, _) in plan.maximumUses = 1 }
      return Finding(
        try adversary.byReference(issued, on: try adversary.connect()), refused: [.usesExhausted, .tokenUnknown])
    },
    Attack(
      "reference-without-a-proof",
      "A new trusted token comes as a whole with a wrong device proof, and then its reference with the right one.",
      due: text(of: [.tokenUnknown]), .issuer
    ) { (adversary) throws(AttackFault) in
      let (issued, reply) = try adversary.unprovedToken()
      guard reply.refuses(with: [.deviceMismatch]) else { return Finding(reply, refused: [.deviceMismatch]) }
      return Finding(try adversary.byReference(issued, on: try adversary.connect()), refused: [.tokenUnknown])
    },
    Attack(
      "expired-by-reference", "A trusted token is used again by reference once it has expired.",
      due: text(of: [.tokenExpired, .tokenUnknown]), [.issuer, .acceptance]
    ) { (adversary) throws(AttackFault) in
      var end: UInt64 = 0
      let issued = try adversary.acceptedToken { (plan, time) throws(AttackFault) in
        guard let time else { throw .notTried("the device tells no time") }
        end = time + 2
        plan.expires = end
      }
      _ = poll(nil, 0, 4000)
      let line = try adversary.connect()
      // Without a real clock, the time is that of the newest token.
      guard let time = line.clock, time >= end else { throw .notTried("the device's clock stands still, or is slow") }
      return Finding(try adversary.byReference(issued, on: line), refused: [.tokenExpired, .tokenUnknown])
    },
  ]

  /// Makes an attack that sends one M2 for each of `places`, each on a new connection behind an accepted round with the whole token.
  private static func remembered(
    _ id: String, _ did: String, at places: [Int] = [0], refused statuses: [Status],
    _ draft: @escaping @Sendable (inout Adversary, Line, Int) throws(AttackFault) -> Draft
  ) -> Attack {
    Attack(id, did, due: text(of: statuses), .acceptance) { (adversary) throws(AttackFault) in
      var replies: [Reply] = []
      for place in places {
        let line = try adversary.connectRemembered()
        let reply = adversary.exchange(try draft(&adversary, line, place), on: line)
        if !statuses.contains(.tokenUnknown) { try adversary.checkRemembers(reply) }
        replies.append(reply)
      }
      return Finding(replies, refused: statuses)
    }
  }

  /// Makes an attack that changes an honest M2 with a reference.
  private static func changed(
    _ id: String, _ did: String, at places: [Int] = [0], refused statuses: [Status],
    _ change: @escaping @Sendable (inout Draft, Int) -> Void
  ) -> Attack {
    remembered(id, "\(did), by reference.", at: places, refused: statuses) {
      (adversary, line, place) throws(AttackFault) -> Draft in
      var draft = try adversary.draftByReference(on: line)
      change(&draft, place)
      return draft
    }
  }

  /// Makes an attack of a prover with one other secret.
  private static func persona(
    _ id: String, _ place: String, refused statuses: [Status],
    _ change: @escaping @Sendable (Persona, Persona) -> Persona
  ) -> Attack {
    remembered(id, "The reference of a remembered token is used \(place).", refused: statuses) {
      (adversary, line, _) throws(AttackFault) -> Draft in
      let other = change(adversary.persona, try .random(&adversary.random))
      return try adversary.draft(on: line, as: other, .reference, try adversary.reference(of: adversary.token))
    }
  }
}

/// A token of an invented prover.
private struct IssuedToken {
  let persona: Persona
  let token: [UInt8]
}

extension Adversary {
  /// Connects, has the whole token accepted, and waits for the next challenge.
  fileprivate mutating func connectRemembered() throws(AttackFault) -> Line {
    let line = try connect()
    guard try acceptedRound(on: line) != nil else { throw .notTried("the whole token was not accepted") }
    return line
  }

  /// Has the device accept a new trusted token as a whole.
  ///
  /// - Parameter change: changes the token's claims; it gets the device's time, too.
  fileprivate mutating func acceptedToken(
    _ change: (inout TokenPlan, UInt64?) throws(AttackFault) -> Void
  ) throws(AttackFault) -> IssuedToken {
    let persona = try Persona.random(&random)
    let line = try connect()
    let time = line.clock
    let token = try makeToken(of: persona, .cose, isTrusted: true) { (draft) throws(AttackFault) in
      try change(&draft.plan, time)
    }
    let reply = exchange(try draft(on: line, as: persona, .cose, token), on: line)
    guard reply == .verdict(.accepted, .right) else {
      throw .notTried("the new token was not accepted: \(reply.text)")
    }
    return IssuedToken(persona: persona, token: token)
  }

  /// Presents a new trusted token with a wrong device proof, on a connection that ends: RFCOMM has one at a time.
  fileprivate mutating func unprovedToken() throws(AttackFault) -> (IssuedToken, Reply) {
    let persona = try Persona.random(&random)
    let token = try makeToken(of: persona, .cose, isTrusted: true)
    let line = try connect()
    var wrong = try draft(on: line, as: persona, .cose, token)
    wrong.deviceProof = MAC()
    return (IssuedToken(persona: persona, token: token), exchange(wrong, on: line))
  }

  /// Presents a token by its reference.
  fileprivate mutating func byReference(_ issued: IssuedToken, on line: Line) throws(AttackFault) -> Reply {
    exchange(try draft(on: line, as: issued.persona, .reference, try reference(of: issued.token)), on: line)
  }

  /// Gives up the attack if the device does not know a token that it accepted in the round before.
  fileprivate func checkRemembers(_ reply: Reply) throws(AttackFault) {
    if reply == .verdict(.tokenUnknown, .absent) { throw .notTried("the device remembers no token") }
  }
}
