import HoldfastCore
import HoldfastOpenSSL

/// Attacks on the proofs, the sealed request and the compatibility round.
extension Attack {
  static let proofs: [Attack] = [
    flips("flip-device-proof", "One bit of the device proof is flipped.", refused: [.deviceMismatch]) {
      $0.deviceProof?[$1] ^= 1
    },
    changed("no-device-proof", "The device proof is left out.", refused: [.deviceMismatch]) { $0.deviceProof = nil },
    changed("no-proofs", "Both proofs are left out.", refused: [.deviceMismatch]) {
      ($0.integrityProof, $0.deviceProof) = (nil, nil)
    },
    flips("flip-integrity-proof", "One bit of the integrity proof is flipped.", refused: [.integrityMismatch]) {
      $0.integrityProof?[$1] ^= 0x80
    },
    changed("zero-integrity-proof", "The integrity proof is all zeros.", refused: [.integrityMismatch]) {
      $0.integrityProof = MAC()
    },
    changed(
      "device-proof-as-integrity", "The device proof is given as the integrity proof.", refused: [.integrityMismatch]
    ) { $0.integrityProof = $0.deviceProof },
    changed(
      "integrity-proof-as-device", "The integrity proof is given as the device proof.", refused: [.deviceMismatch]
    ) {
      $0.deviceProof = $0.integrityProof
    },
    changed("flip-random", "One bit of the prover's random bytes is flipped.", refused: [.deviceMismatch]) {
      $0.head[3] ^= 1
    },
    Attack(
      "no-integrity-proof", "A command that needs the integrity proof (--guarded) is sent without it.",
      refused: [.factorMissing, .commandRefused]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      var draft = try adversary.draft(on: line, request: adversary.request(adversary.options.guarded))
      draft.integrityProof = nil
      return draft
    },
    Attack(
      "guarded-wrong-integrity", "A command that needs the integrity proof is sent with a wrong one.",
      refused: [.integrityMismatch]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      var draft = try adversary.draft(on: line, request: adversary.request(adversary.options.guarded))
      draft.integrityProof = MAC()
      return draft
    },
    nonce(
      "proofs-of-challenge", "The proofs are made for the bare challenge as the nonce."
    ) { (draft) in (try? Challenge(draft.challenge.span))?.nonce ?? Nonce() },
    nonce("proofs-without-top-bit", "The proofs are made for the round's nonce without its top bit.") { (draft) in
      var nonce = draft.proofNonce
      nonce[0] &= 0x7f
      return nonce
    },
    persona("another-host", "The token is used on a host with another device measurement.", refused: [.deviceMismatch])
    {
      Persona(proofKey: $0.proofKey.copy(), integrity: $0.integrity.copy(), device: $1.device.copy())
    },
    persona("another-proof-key", "The proofs are made with another proof key.", refused: [.deviceMismatch]) {
      Persona(proofKey: $1.proofKey.copy(), integrity: $0.integrity.copy(), device: $0.device.copy())
    },
    persona(
      "changed-app", "The proofs are those of a changed app, with another integrity measurement.",
      refused: [.integrityMismatch]
    ) { Persona(proofKey: $0.proofKey.copy(), integrity: $1.integrity.copy(), device: $0.device.copy()) },
  ]

  static let requests: [Attack] = [
    changed("flip-sealed-request", "One bit of the sealed request is flipped.", refused: [.malformed]) {
      $0.sealed[0] ^= 1
    },
    changed("flip-sealed-tag", "One bit of the request's tag is flipped.", refused: [.malformed]) {
      $0.sealed[$0.sealed.count - 1] ^= 1
    },
    changed("no-sealed-tag", "The tag of the sealed request is cut off.", refused: [.malformed]) {
      $0.sealed.removeLast(16)
    },
    changed("empty-sealed-request", "The sealed request is empty.", refused: [.malformed]) { $0.sealed = [] },
    Attack(
      "clear-request", "The request is sent without encryption.", refused: [.malformed]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      let request = adversary.request()
      var draft = try adversary.draft(on: line, request: request)
      draft.sealed = request
      return draft
    },
    Attack(
      "reflected-key", "The request is sealed with the key of the other direction.", refused: [.malformed]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      let request = adversary.request()
      var draft = try adversary.draft(on: line, request: request)
      do throws(CryptographyFailure) { draft.sealed = try draft.reflected(request) } catch {
        throw .cryptography
      }
      return draft
    },
    request("unknown-command", "A command that no policy names is sent.", refused: [.commandRefused]) { (_) in
      [0xa1, 0x01, 0x6e] + Array("no-such-thing-".utf8)
    },
    request("request-map-order", "The members of the request are out of order.", refused: [.malformed]) { (command) in
      [0xa2, 0x05, 0x01, 0x01] + command
    },
    request("request-long-length", "A length in the request has more bytes than it needs.", refused: [.malformed]) {
      (command) in [0xa1, 0x01, 0x78] + [command[0] & 0x1f] + command.dropFirst()
    },
    request(
      "request-unknown-member", "The request has a member that the protocol does not name.", refused: [.malformed]
    ) {
      (command) in [0xa2, 0x01] + command + [0x06, 0x00]
    },
    request("request-member-twice", "The request has the command twice.", refused: [.malformed]) { (command) in
      [0xa2, 0x01] + command + [0x01] + command
    },
    request("request-trailing-byte", "A byte follows the request, under the seal.", refused: [.malformed]) {
      (command) in
      [0xa1, 0x01] + command + [0x00]
    },
    request("nine-parameters", "The request has nine parameters.", refused: [.malformed]) { (command) in
      [0xa2, 0x01] + command + [0x02, 0x89] + [UInt8](repeating: 0x60, count: 9)
    },
    request("long-parameter", "A parameter has 65 bytes.", refused: [.malformed]) { (command) in
      [0xa2, 0x01] + command + [0x02, 0x81, 0x78, 65] + [UInt8](repeating: 0x70, count: 65)
    },
  ]

  /// Makes an attack that changes parts of an honest M2.
  private static func changed(
    _ id: String, _ did: String, refused statuses: [Status], _ change: @escaping @Sendable (inout Draft) -> Void
  ) -> Attack {
    Attack(id, did, refused: statuses) { (adversary, line) throws(AttackFault) -> Draft in
      var draft = try adversary.draft(on: line)
      change(&draft)
      return draft
    }
  }

  /// Makes an attack that flips a bit of the first, the middle and the last byte of a proof, each on a new connection.
  private static func flips(
    _ id: String, _ did: String, refused statuses: [Status], _ flip: @escaping @Sendable (inout Draft, Int) -> Void
  ) -> Attack {
    Attack(id, did, due: text(of: statuses)) { (adversary) throws(AttackFault) in
      var replies: [Reply] = []
      for index in [0, 16, 31] {
        let line = try adversary.connect()
        var draft = try adversary.draft(on: line)
        flip(&draft, index)
        replies.append(adversary.exchange(draft, on: line))
      }
      return Finding(replies, refused: statuses)
    }
  }

  /// Makes an attack with proofs for another nonce.
  private static func nonce(
    _ id: String, _ did: String, _ nonce: @escaping @Sendable (Draft) -> Nonce
  ) -> Attack {
    Attack(id, did, refused: [.deviceMismatch]) { (adversary, line) throws(AttackFault) -> Draft in
      var draft = try adversary.draft(on: line)
      do throws(CryptographyFailure) {
        (draft.integrityProof, draft.deviceProof) = try Draft.proofs(of: adversary.persona, for: nonce(draft))
      } catch { throw .cryptography }
      return draft
    }
  }

  /// Makes an attack of a prover with one other secret.
  private static func persona(
    _ id: String, _ did: String, refused statuses: [Status],
    _ change: @escaping @Sendable (Persona, Persona) -> Persona
  ) -> Attack {
    Attack(id, did, refused: statuses) { (adversary, line) throws(AttackFault) -> Draft in
      let other = change(adversary.persona, try .random(&adversary.random))
      return try adversary.draft(on: line, as: other, adversary.encoding, adversary.token)
    }
  }

  /// Makes an attack with another plaintext under the seal, made from the encoded command.
  private static func request(
    _ id: String, _ did: String, refused statuses: [Status], _ plaintext: @escaping @Sendable ([UInt8]) -> [UInt8]
  ) -> Attack {
    Attack(id, did, refused: statuses) { (adversary, line) throws(AttackFault) -> Draft in
      var command: [UInt8] = []
      command.appendCBOR(text: adversary.options.command.bytes)
      return try adversary.draft(on: line, request: plaintext(command))
    }
  }
}

/// The downgrade to the compatibility round.
extension Attack {
  private static let downgrade: [Status] = [
    .commandRefused, .factorMissing, .malformed, .deviceMismatch, .busy, .usesExhausted,
  ]

  static let compatibility: [Attack] = [
    Attack(
      "downgrade", "The honest command is sent in a compatibility round, with right proofs.",
      due: "a refusal without a seal; with --compatibility, accepted"
    ) { (adversary) throws(AttackFault) in
      let nonce = try adversary.compatibilityNonce()
      let reply = try adversary.compatibilityRound(nonce)
      if adversary.options.allowsCompatibility, reply == .verdict(.accepted, .absent) {
        return Finding(reply.text, isSound: true)
      }
      return Finding(reply.text, isSound: reply.isUnsealedRefusal)
    },
    Attack(
      "compatibility-twice", "The nonce of a compatibility round is used again.",
      due: text(of: [.deviceMismatch, .busy]) + ", from a device that looks at the proofs"
    ) { (adversary) throws(AttackFault) in
      let wrong = try adversary.compatibilityRound(try adversary.compatibilityNonce(), proofs: (MAC(), MAC()))
      let nonce = try adversary.compatibilityNonce()
      let first = try adversary.compatibilityRound(nonce)
      let reply = try adversary.compatibilityRound(nonce)
      // Right proofs use the nonce up, whatever the verdict is. A device without such rounds need not look at them.
      if wrong == .verdict(.deviceMismatch, .absent), case .verdict(let status, .absent, _) = first,
        Status.ofRightProofs.contains(status)
      {
        return Finding(reply, refused: [.deviceMismatch, .busy])
      }
      return Finding(reply.text, isSound: reply.isUnsealedRefusal)
    },
    Attack(
      "session-proof-in-compatibility", "The proofs of a session round are moved into a compatibility round.",
      due: text(of: [.malformed])
    ) { (adversary) throws(AttackFault) in
      let line = try adversary.connect()
      let draft = try adversary.draft(on: line)
      let reply = adversary.exchange(
        try adversary.compatibilityMessage(
          draft.proofNonce, (draft.integrityProof ?? MAC(), draft.deviceProof ?? MAC())),
        on: line)
      return Finding(reply, refused: [.malformed])
    },
    Attack(
      "compatibility-wrong-proof", "A compatibility round has a wrong device proof.", due: text(of: [.deviceMismatch])
    ) { (adversary) throws(AttackFault) in
      let reply = try adversary.compatibilityRound(try adversary.compatibilityNonce(), proofs: (MAC(), MAC()))
      return Finding(reply.text, isSound: reply.isUnsealedRefusal)
    },
  ]
}

extension Status {
  /// The verdicts on compatibility rounds that tell of right proofs.
  fileprivate static let ofRightProofs: [Status] = [.accepted, .commandRefused, .factorMissing, .usesExhausted]
}

extension Reply {
  /// Whether the reply is a refusal as compatibility rounds have it: never with a seal.
  fileprivate var isUnsealedRefusal: Bool {
    switch self {
    case .verdict(let status, let seal, _): status != .accepted && status != .internal && seal == .absent
    case .closed: true
    default: false
    }
  }
}

extension Adversary {
  /// Draws a nonce whose top bit is zero.
  fileprivate mutating func compatibilityNonce() throws(AttackFault) -> Nonce {
    var nonce: Nonce
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw .cryptography }
    nonce[0] &= 0x7f
    return nonce
  }

  /// Sends a compatibility round on a new connection, with the right proofs or with others.
  fileprivate mutating func compatibilityRound(
    _ nonce: Nonce, proofs: (integrity: MAC, device: MAC)? = nil
  ) throws(AttackFault) -> Reply {
    let line = try connect()
    let right: (integrity: MAC, device: MAC)
    do throws(CryptographyFailure) { right = try Draft.proofs(of: persona, for: nonce) } catch { throw .cryptography }
    return exchange(try compatibilityMessage(nonce, proofs ?? right), on: line)
  }

  fileprivate func compatibilityMessage(
    _ nonce: Nonce, _ proofs: (integrity: MAC, device: MAC)
  ) throws(AttackFault) -> [UInt8] {
    var message: [UInt8] = []
    ProofMessage.encodeCompatibility(
      nonce: nonce, encoding: encoding, token: token.span, integrityProof: proofs.integrity,
      deviceProof: proofs.device, command: options.command, into: &message)
    return message
  }
}
