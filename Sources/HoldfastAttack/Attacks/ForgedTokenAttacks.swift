import HoldfastCore
import HoldfastFormats

/// Attacks with tokens that the adversary makes, each written once for both formats: COSE, and JOSE under an id that ends with `-jose`.
extension Attack {
  /// The attacks of somebody without an issuer's key.
  static let forgeries: [Attack] = [
    forged("foreign-issuer", "A token is signed by an issuer whom the device does not trust."),
    forged("unsigned-token", "A token has no signature.") { $0.isSigned = false },
    forged("own-mac", "A token has a MAC under a key of the adversary's.") {
      $0.seal = .mac([UInt8](repeating: 7, count: 32))
    },
    forged("empty-key-id", "A token is signed under a key id of zeros.") { $0.keyID = KeyID() },
    forged("stolen-key-id", "A token is signed by the adversary under the trusted issuer's key id.", .issuerPoint) {
      $0.claimTrust()
    },
    forged(
      "zero-signature", "A token under the trusted key id has a signature of zeros, or an empty one.", .issuerPoint,
      [64, 0].map { count in
        Variant("a signature of \(count) zeros") {
          $0.claimTrust()
          $0.seal = .bytes([UInt8](repeating: 0, count: count))
        }
      }),
    forged(
      "public-key-as-mac", "A token has a MAC whose key is the trusted issuer's public one, in each of its formats.",
      .issuerPoint,
      PublicKeyText.allCases.map { format in
        Variant("the key as \(format.rawValue)") {
          $0.claimTrust()
          $0.seal = .mac($0.keys.trusted.map(format.bytes) ?? [])
        }
      }),
  ].flatMap { $0 }

  /// The attacks of somebody who has an issuer's key that the device trusts, or of a thief of another device's tokens.
  static let issuers: [Attack] = [
    issued("token-of-another-device", "A trusted token is for another device.") {
      $0.plan.audience = DeviceID(FixedBytes<16>().bytes) ?? $0.plan.audience
    },
    issued("token-for-another-key", "A trusted token is encrypted to another key.") {
      (draft) throws(AttackFault) in try draft.addressToAnotherKey()
    },
    issued("expired-token", "A trusted token has expired.", refused: .tokenExpired) {
      $0.plan.expire()
    },
    issued("expiry-before-issue", "A trusted token was issued when it had expired already.") {
      $0.plan.expires = $0.plan.issuedAt
    },
    issued("old-generation", "A trusted token is of a generation before the prover's.", refused: .tokenRevoked) {
      (draft) throws(AttackFault) in
      guard draft.plan.generation > 0 else { throw .notTried("there is no earlier generation") }
      draft.plan.generation -= 1
    },
    issued("no-commands", "A trusted token allows no command.", refused: .commandRefused) { $0.plan.commands = [] },
    issued("another-command", "A trusted token allows another command only.", refused: .commandRefused) {
      $0.plan.commands = ["another-command"]
    },
    issued("unknown-claim", "A trusted token has a claim that no token has.") { $0.hasUnknownClaim = true },
    issued(
      "another-type", "A trusted issuer's signature is under the type of another message.",
      [COSE.bulletinType, "holdfast-at"].map { type in Variant("the type \(type)") { $0.type = type } }),
    issued("unencrypted-token", "A trusted token is signed, but not encrypted.") { $0.isEncrypted = false },
    issued("content-of-other-encoding", "A trusted token of the other format is within the encryption of this one.") {
      $0.contentEncoding = $0.encoding == .cose ? .jose : .cose
    },
    issued(
      "point-off-the-curve", "The ephemeral key of a trusted token is a point that is not on the curve.",
      [FalsePoint(x: 3, y: 4, shared: 3), FalsePoint(x: 5, y: 0, shared: 5), FalsePoint(x: 0, y: 0, shared: 0)].map {
        point in Variant("the point (\(point.x), \(point.y))") { $0.falsePoint = point }
      }),
    issued(
      "future-token", "A trusted token was issued ten years ahead of the device's time.", .destruction
    ) {
      $0.plan.issuedAt += 315_360_000
      $0.plan.expires = $0.plan.issuedAt + 3600
    },
    [
      uses("uses", "A trusted token for one use is used twice, the second time encrypted anew.", .cose, .cose),
      uses("uses-jose", "The same in JOSE.", .jose, .jose),
      uses("uses-in-both-encodings", "The same, the second time in JOSE.", .cose, .jose),
    ],
  ].flatMap { $0 }

  /// One of the tokens of an attack.
  struct Variant: Sendable {
    /// The difference from a right token, in words.
    let name: String
    let change: @Sendable (inout TokenDraft) throws(AttackFault) -> Void

    init(_ name: String, _ change: @escaping @Sendable (inout TokenDraft) throws(AttackFault) -> Void) {
      (self.name, self.change) = (name, change)
    }
  }

  /// Makes an attack with one or more tokens, each of which is due to be refused with `status`.
  static func tokens(
    _ id: String, _ did: String, refused status: Status, _ needs: Needs, _ encoding: TokenEncoding, isTrusted: Bool,
    _ variants: [Variant]
  ) -> Attack {
    var needs = needs
    if isTrusted { needs.insert(.issuer) }
    if encoding == .jose { needs.insert(.jose) }
    return Attack(id, did, due: text(of: [status]) + (variants.count > 1 ? ", for each" : ""), needs) {
      (adversary) throws(AttackFault) in
      var finding = Finding("", isSound: false)
      for variant in variants {
        let reply = try adversary.present(encoding, isTrusted: isTrusted, variant.change)
        finding = Finding(reply, refused: [status])
        guard finding.isSound else {
          if variants.count > 1 { finding.observed += ", with \(variant.name)" }
          return finding
        }
      }
      return finding
    }
  }

  private static func inBoth(
    _ id: String, _ did: String, refused status: Status, _ needs: Needs, isTrusted: Bool, _ variants: [Variant]
  ) -> [Attack] {
    [
      tokens(id, did, refused: status, needs, .cose, isTrusted: isTrusted, variants),
      tokens(id + "-jose", did + " It is in JOSE.", refused: status, needs, .jose, isTrusted: isTrusted, variants),
    ]
  }

  private static func forged(
    _ id: String, _ did: String, _ needs: Needs = [],
    _ change: @escaping @Sendable (inout TokenDraft) throws(AttackFault) -> Void = { _ in }
  ) -> [Attack] { forged(id, did, needs, [Variant("", change)]) }

  private static func forged(_ id: String, _ did: String, _ needs: Needs, _ variants: [Variant]) -> [Attack] {
    inBoth(id, did, refused: .tokenInvalid, needs, isTrusted: false, variants)
  }

  private static func issued(
    _ id: String, _ did: String, refused status: Status = .tokenInvalid, _ needs: Needs = [],
    _ change: @escaping @Sendable (inout TokenDraft) throws(AttackFault) -> Void
  ) -> [Attack] { inBoth(id, did, refused: status, needs, isTrusted: true, [Variant("", change)]) }

  private static func issued(_ id: String, _ did: String, _ variants: [Variant]) -> [Attack] {
    inBoth(id, did, refused: .tokenInvalid, [], isTrusted: true, variants)
  }

  /// Makes an attack that presents a token for one use in two forms.
  private static func uses(
    _ id: String, _ did: String, _ first: TokenEncoding, _ second: TokenEncoding
  ) -> Attack {
    let needs: Needs = first == .jose || second == .jose ? [.issuer, .acceptance, .jose] : [.issuer, .acceptance]
    return Attack(id, did, due: text(of: [.usesExhausted]) + ", for the second", needs) {
      (adversary) throws(AttackFault) in
      var plan = try adversary.plan()
      plan.maximumUses = 1
      let persona = try Persona.random(&adversary.random)
      var replies: [Reply] = []
      for encoding in [first, second] {
        let line = try adversary.connect()
        let token = try adversary.makeToken(of: persona, encoding, isTrusted: true) { $0.plan = plan }
        replies.append(adversary.exchange(try adversary.draft(on: line, as: persona, encoding, token), on: line))
      }
      guard replies[0] == .verdict(.accepted, .right) else {
        throw .notTried("the new token was not accepted: \(replies[0].text)")
      }
      return Finding(replies[1], refused: [.usesExhausted])
    }
  }
}

/// The formats of a public key that a careless device may take for a secret.
enum PublicKeyText: String, CaseIterable {
  case point = "an uncompressed point"
  case coordinates = "both coordinates"
  case der = "DER"
  case pem = "PEM"
  case jwk = "a JWK"

  /// The bytes of a key in this format.
  func bytes(of point: P256Point) -> [UInt8] {
    switch self {
    case .point: [UInt8](point.bytes)
    case .coordinates: [UInt8](point.bytes.extracting(droppingFirst: 1))
    case .der: SubjectPublicKeyInfo.der(of: point)
    case .pem: Array(SubjectPublicKeyInfo.pem(of: point).utf8)
    case .jwk: publicJWK(curve: .p256, point: [UInt8](point.bytes)).compact()
    }
  }
}
