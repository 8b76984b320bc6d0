import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL

/// Attacks on the token: each field, the issuer, the device, the algorithm, the encoding.
extension Attack {
  static let tokens: [Attack] = [
    Attack(
      "flip-token", "One bit in each part of the token is flipped, with proofs that fit.",
      due: text(of: [.tokenInvalid]) + ", for each"
    ) { (adversary) throws(AttackFault) in
      for (part, index) in TokenPart.places(in: adversary.token, adversary.encoding) {
        let line = try adversary.connect()
        let changed = adversary.token.flipped(at: index)
        let reply = adversary.exchange(try adversary.draft(on: line, token: changed, adversary.encoding), on: line)
        guard reply.refuses(with: [.tokenInvalid]) else {
          return Finding("with a flipped bit in \(part): \(reply.text)", isSound: false)
        }
      }
      return Finding("tokenInvalid, without a seal, for each", isSound: true)
    },
    Attack(
      "flip-token-in-flight", "One bit of the token is flipped in an honest M2.", refused: [.tokenInvalid]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      var draft = try adversary.draft(on: line)
      draft.head = draft.head.flipped(at: draft.head.count - adversary.token.count / 2)
      return draft
    },
    token("truncated-token", "The last byte of the token is cut off.") { $0.removeLast() },
    token("extended-token", "A byte follows the token.") { $0.append($0.last == 0x40 ? 0 : 0x41) },
    token("empty-token", "The token is empty.", refused: [.tokenInvalid, .malformed]) { $0 = [] },
    Attack("token-as-other-encoding", "The token is given as one of the other encoding.", refused: [.tokenInvalid]) {
      (adversary, line) throws(AttackFault) -> Draft in
      try adversary.draft(on: line, token: adversary.token, adversary.encoding == .cose ? .jose : .cose)
    },
    Attack("re-encoded-token", "The token is encoded again, not deterministically.", refused: [.tokenInvalid]) {
      (adversary, line) throws(AttackFault) -> Draft in
      var token = adversary.token
      if adversary.encoding == .cose {
        // The head of the array of four, in two bytes.
        token.replaceSubrange(2..<3, with: [0x98, 0x04])
      } else {
        token.append(0x3d)
      }
      return try adversary.draft(on: line, token: token, adversary.encoding)
    },
    forged("foreign-issuer", "A token is signed by an issuer whom the device does not trust.", [.cose, .jose]) {
      (forger, claims) throws(CryptographyFailure) in try forger.signed(claims, keyID: forger.ownKeyID)
    },
    forged("unsigned-token", "A token has no signature.", [.cose]) { (forger, claims) throws(CryptographyFailure) in
      try Forger.encoded(claims)
    },
    forged("own-mac", "A token has a MAC under a key of the adversary's.", [.cose]) {
      (forger, claims) throws(CryptographyFailure) in
      try forger.authenticated(claims, key: [UInt8](repeating: 7, count: 32), keyID: forger.ownKeyID)
    },
    forged("empty-key-id", "A token is signed under a key id of zeros.", [.cose]) {
      (forger, claims) throws(CryptographyFailure) in try forger.signed(claims, keyID: KeyID())
    },
    forged(
      "stolen-key-id", "A token is signed by the adversary under the trusted issuer's key id.", [.cose], .issuerPoint
    ) { (forger, claims) throws(CryptographyFailure) in
      try forger.signed(claims, keyID: forger.trustedKeyID ?? KeyID())
    },
    forged("zero-signature", "A token under the trusted key id has a signature of zeros.", [.cose], .issuerPoint) {
      (forger, claims) throws(CryptographyFailure) in
      try forger.message(claims, seal: [UInt8](repeating: 0, count: 64), keyID: forger.trustedKeyID ?? KeyID())
    },
    forged(
      "public-key-as-mac", "A token has a MAC whose key is the trusted issuer's public point.", [.cose], .issuerPoint
    ) { (forger, claims) throws(CryptographyFailure) in
      try forger.authenticated(
        claims, key: forger.trustedPoint.map { [UInt8]($0.bytes) } ?? [], keyID: forger.trustedKeyID ?? KeyID())
    },
  ]

  /// The attacks of somebody who has an issuer's key that the device trusts, or of a thief of another device's tokens.
  static let issuers: [Attack] = [
    issued("token-of-another-device", "A trusted token is for another device.", refused: [.tokenInvalid]) {
      $0.audience = DeviceID(FixedBytes<16>().bytes) ?? $0.audience
    },
    issued("token-for-another-key", "A trusted token is encrypted to another key.", refused: [.tokenInvalid]) {
      $0.isForAnotherKey = true
    },
    issued("expired-token", "A trusted token has expired.", refused: [.tokenExpired]) {
      $0.expires = $0.issuedAt + 1
    },
    issued("old-generation", "A trusted token is of a generation before the prover's.", refused: [.tokenRevoked]) {
      (plan) throws(AttackFault) in
      guard plan.generation > 0 else { throw .notTried("there is no earlier generation") }
      plan.generation -= 1
    },
    issued("no-commands", "A trusted token allows no command.", refused: [.commandRefused]) { $0.commands = [] },
    issued("another-command", "A trusted token allows another command only.", refused: [.commandRefused]) {
      $0.commands = ["another-command"]
    },
    issued(
      "future-token", "A trusted token was issued ten years ahead of the device's time.", refused: [.tokenInvalid],
      .destruction
    ) {
      $0.issuedAt += 315_360_000
      $0.expires = $0.issuedAt + 3600
    },
    Attack(
      "uses", "A trusted token for one use is used twice, the second time encrypted anew.",
      due: text(of: [.usesExhausted]) + ", for the second", [.issuer, .acceptance]
    ) { (adversary) throws(AttackFault) in
      var plan = try adversary.plan()
      plan.maximumUses = 1
      let persona = try Persona.random(&adversary.random)
      var replies: [Reply] = []
      for _ in 0..<2 {
        let line = try adversary.connect()
        let token = try adversary.issue(plan, of: persona)
        replies.append(adversary.exchange(try adversary.draft(on: line, as: persona, .cose, token), on: line))
      }
      guard replies[0] == .verdict(.accepted, .right) else {
        throw .notTried("the new token was not accepted: \(replies[0].text)")
      }
      return Finding(replies[1], refused: [.usesExhausted])
    },
  ]

  private static func token(
    _ id: String, _ did: String, refused statuses: [Status] = [.tokenInvalid],
    _ change: @escaping @Sendable (inout [UInt8]) -> Void
  ) -> Attack {
    Attack(id, did, refused: statuses) { (adversary, line) throws(AttackFault) -> Draft in
      var token = adversary.token
      change(&token)
      return try adversary.draft(on: line, token: token, adversary.encoding)
    }
  }

  /// Makes an attack with a token of the adversary's own making, for a prover that it invents.
  private static func forged(
    _ id: String, _ did: String, _ encodings: [TokenEncoding], _ needs: Needs = [],
    _ make: @escaping @Sendable (inout Forger, borrowing MeasurementClaims) throws(CryptographyFailure) -> COSEText
  ) -> Attack {
    Attack(id, did, due: text(of: [.tokenInvalid]), needs) { (adversary) throws(AttackFault) in
      let persona = try Persona.random(&adversary.random)
      var forger = try Forger(trusted: adversary.issuerPoint)
      let claims = try adversary.plan().claims(of: persona)
      var replies: [Reply] = []
      for encoding in encodings {
        let token: [UInt8]
        if encoding == .jose {
          token = try forger.jose(claims, to: adversary.descriptor.publicPoint)
        } else {
          do throws(CryptographyFailure) {
            var text = try make(&forger, claims)
            token = try Forger.encrypt(&text, to: adversary.descriptor.publicPoint)
          } catch { throw .cryptography }
        }
        let line = try adversary.connect()
        replies.append(adversary.exchange(try adversary.draft(on: line, as: persona, encoding, token), on: line))
      }
      return Finding(replies, refused: [.tokenInvalid])
    }
  }

  /// Makes an attack with a token of an issuer that the device trusts.
  private static func issued(
    _ id: String, _ did: String, refused statuses: [Status], _ needs: Needs = [],
    _ change: @escaping @Sendable (inout TokenPlan) throws(AttackFault) -> Void
  ) -> Attack {
    Attack(id, did, refused: statuses, needs.union(.issuer)) { (adversary, line) throws(AttackFault) -> Draft in
      var plan = try adversary.plan()
      try change(&plan)
      let persona = try Persona.random(&adversary.random)
      let token = try adversary.issue(plan, of: persona)
      return try adversary.draft(on: line, as: persona, .cose, token)
    }
  }
}
