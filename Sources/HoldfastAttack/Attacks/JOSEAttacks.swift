import HoldfastCore
import HoldfastFormats

/// Attacks with tokens in JOSE that have no counterpart in COSE: headers that choose, and texts that can be written in several ways.
///
/// Source: RFC 8725 §2 and §3.
extension Attack {
  /// The attacks of somebody without an issuer's key.
  static let josePretences: [Attack] = [
    forged(
      "no-algorithm", "A token in JOSE says that it needs no signature.",
      ["none", "None", "NONE", "nOnE"].map { name in
        Variant("\(name), and an empty signature") {
          $0.claimTrust()
          $0.seal = .bytes([])
          $0.jose.change(.signedHeader, .set("alg", "\"\(name)\""))
        }
      } + [
        Variant("none, and a signature") {
          $0.claimTrust()
          $0.jose.change(.signedHeader, .set("alg", "\"none\""))
        },
        Variant("an empty name, and an empty signature") {
          $0.claimTrust()
          $0.seal = .bytes([])
          $0.jose.change(.signedHeader, .set("alg", "\"\""))
        },
      ]),
    forged(
      "key-in-header", "A token in JOSE is signed by the adversary, and its header has the key.",
      [
        Variant("the adversary's key id") { $0.addKeyToHeader() },
        Variant("the trusted issuer's key id") {
          $0.claimTrust()
          $0.addKeyToHeader()
        },
      ]),
  ]

  /// The attacks that need a signature of an issuer that the device trusts.
  static let joseTraps: [Attack] = [
    trap(
      "another-signature-algorithm", "A trusted token in JOSE names an algorithm that is not its signature's.",
      ["ES384", "HS256", "EdDSA", "es256"].map { name in
        changing("the algorithm \(name)", .signedHeader, .set("alg", "\"\(name)\""))
      }),
    trap(
      "critical-header", "A trusted token in JOSE has a header parameter that a device must understand and does not.",
      [
        changing("one in the JWS", .signedHeader, .add("crit", "[\"unk\"]"), .add("unk", "1")),
        changing("one in the JWE", .encryptedHeader, .add("crit", "[\"unk\"]"), .add("unk", "1")),
        changing("the parameter b64", .signedHeader, .add("crit", "[\"b64\"]"), .add("b64", "true")),
        changing("an empty list of them", .signedHeader, .add("crit", "[]")),
      ]),
    trap(
      "missing-parameter", "A trusted token in JOSE lacks a header parameter.",
      [
        changing("no alg in the JWS", .signedHeader, .remove("alg")),
        changing("no kid in the JWS", .signedHeader, .remove("kid")),
        changing("no typ in the JWS", .signedHeader, .remove("typ")),
        changing("another typ in the JWS", .signedHeader, .set("typ", "\"JWT\"")),
        changing("no kid in the JWE", .encryptedHeader, .remove("kid")),
        changing("another kid in the JWE", .encryptedHeader, .set("kid", "\"AAAAAAAAAAA\"")),
        changing("no cty in the JWE", .encryptedHeader, .remove("cty")),
      ]),
    trap(
      "duplicate-member", "A trusted token in JOSE has a member twice.",
      [
        changing("an algorithm before the right one", .signedHeader, .addFirst("alg", "\"none\"")),
        changing("an algorithm behind the right one", .signedHeader, .add("alg", "\"none\"")),
        changing("a type before the right one", .signedHeader, .addFirst("typ", "\"JWT\"")),
        changing("an encryption before the right one", .encryptedHeader, .addFirst("enc", "\"A128GCM\"")),
        changing("an audience before the right one", .claims, .addFirst("aud", "\"AAAAAAAAAAAAAAAAAAAAAA\"")),
        changing("a time of expiry before the right one", .claims, .addFirst("exp", "1")),
        Variant("a later time of expiry behind an expired one") {
          let right = $0.plan.expires
          $0.plan.expire()
          $0.jose.change(.claims, .add("exp", "\(right)"))
        },
        changing("an escaped name before the right one", .claims, .addFirst("\\u0065xp", "1")),
      ]),
    trap(
      "another-type-of-claim", "A claim of a trusted token in JOSE has another type.",
      [
        Variant("a number with a fraction") { $0.jose.change(.claims, .set("exp", "\($0.plan.expires).0")) },
        changing("a number with an exponent", .claims, .set("exp", "4e9")),
        Variant("a number in a text") { $0.jose.change(.claims, .set("exp", "\"\($0.plan.expires)\"")) },
        changing("a number above 2^53", .claims, .set("exp", "9007199254740993")),
        changing("a list of audiences", .claims, .set("aud", "[\"AAAAAAAAAAAAAAAAAAAAAA\"]")),
        changing("no audience", .claims, .remove("aud")),
        changing("no time of expiry", .claims, .remove("exp")),
      ]),
    trap(
      "bytes-after-json", "Bytes follow an object of a trusted token in JOSE.",
      ([(.signedHeader, "the JWS's header"), (.claims, "the claims"), (.encryptedHeader, "the JWE's header")]
        as [(JOSEChanges.Part, String)])
        .map { part, name in Variant("bytes after \(name)") { $0.jose.tails[part] = Array("{}".utf8) } }),
    trap(
      "padded-part", "A part of a trusted token in JOSE has the padding of base64.",
      spelling(.padded, [.signedHeader, .claims, .signature, .encryptedHeader, .tag])),
    trap(
      "trailing-bits", "A part of a trusted token in JOSE has a bit that belongs to no byte.",
      spelling(.trailingBits, [.signedHeader, .claims, .signature, .encryptedHeader, .tag])),
    trap(
      "another-alphabet", "A part of a trusted token in JOSE is in base64, or has a line break.",
      spelling(.standardAlphabet, [.ciphertext]) + spelling(.broken, [.claims, .ciphertext, .tag])),
    trap(
      "another-signature-form", "The signature of a trusted token in JOSE does not have 64 bytes.",
      [
        Variant("DER") { $0.jose.signature = .der },
        Variant("a byte behind it") { $0.jose.signature = .extended },
      ]),
    trap(
      "another-key-management", "A trusted token in JOSE is encrypted with a key management that is not the key's.",
      [
        Variant("ECDH-ES+A128KW") { $0.jose.management = .ecdhESA128KW },
        Variant("ECDH-ES+A192KW") { $0.jose.management = .ecdhESA192KW },
        changing("the name dir", .encryptedHeader, .set("alg", "\"dir\"")),
        changing("the name RSA-OAEP", .encryptedHeader, .set("alg", "\"RSA-OAEP\"")),
        Variant("a key that ECDH-ES does not wrap") { $0.jose.encryptedKey = [UInt8](repeating: 1, count: 40) },
      ]),
    trap(
      "another-encryption", "A trusted token in JOSE has a content encryption that is not the key's.",
      [
        Variant("A128GCM") { $0.jose.encryption = .a128GCM },
        Variant("A128CBC-HS256") { $0.jose.encryption = .a128CBCHS256 },
        Variant("A256CBC-HS512") { $0.jose.encryption = .a256CBCHS512 },
        changing("the name A128GCM", .encryptedHeader, .set("enc", "\"A128GCM\"")),
      ]),
    trap(
      "another-curve", "The ephemeral key of a trusted token in JOSE names another curve or kind.",
      [
        changing("P-384", .ephemeralKey, .set("crv", "\"P-384\"")),
        changing("OKP", .ephemeralKey, .set("kty", "\"OKP\"")),
      ]),
    trap(
      "truncated-tag", "The authentication tag of a trusted token in JOSE is cut.",
      [15, 12, 4, 0].map { (count: Int) in Variant("\(count) bytes") { $0.jose.tagByteCount = count } }),
    trap(
      "compressed-token", "A trusted token in JOSE says that its contents are compressed.",
      [
        Variant("contents that are") {
          $0.jose.isCompressed = true
          $0.jose.change(.encryptedHeader, .add("zip", "\"DEF\""))
        },
        changing("contents that are not", .encryptedHeader, .add("zip", "\"DEF\"")),
      ]),
    trap(
      "ignored-parties", "A trusted token in JOSE names parties that its key is not derived from.",
      [
        changing("apu", .encryptedHeader, .add("apu", "\"QWxpY2U\"")),
        changing("apv", .encryptedHeader, .add("apv", "\"Qm9i\"")),
      ]),
  ]

  private static func forged(_ id: String, _ did: String, _ variants: [Variant]) -> Attack {
    tokens(id, did, refused: .tokenInvalid, .issuerPoint, .jose, isTrusted: false, variants)
  }

  private static func trap(_ id: String, _ did: String, _ variants: [Variant]) -> Attack {
    tokens(id, did, refused: .tokenInvalid, [], .jose, isTrusted: true, variants)
  }

  private static func changing(_ name: String, _ part: JOSEChanges.Part, _ changes: MemberChange...) -> Variant {
    Variant(name) { $0.jose.members[part, default: []] += changes }
  }

  private static func spelling(_ spelling: JOSEChanges.Spelling, _ parts: [JOSEChanges.Part]) -> [Variant] {
    parts.map { part in Variant("\(spelling.name) in \(part.name)") { $0.jose.spellings[part] = spelling } }
  }
}

extension TokenDraft {
  /// Puts the adversary's public key into the header of the JWS.
  fileprivate mutating func addKeyToHeader() {
    let key = publicJWK(curve: .p256, point: [UInt8](keys.own.bytes)).compact()
    jose.change(.signedHeader, .add("jwk", String(decoding: key, as: UTF8.self)))
  }
}

extension JOSEChanges.Part {
  /// The name for a person.
  fileprivate var name: String {
    switch self {
    case .signedHeader: "the JWS's header"
    case .claims: "the claims"
    case .signature: "the signature"
    case .encryptedHeader: "the JWE's header"
    case .ephemeralKey: "the ephemeral key"
    case .encryptedKey: "the encrypted key"
    case .vector: "the initialization vector"
    case .ciphertext: "the ciphertext"
    case .tag: "the tag"
    }
  }
}

extension JOSEChanges.Spelling {
  /// The name for a person.
  fileprivate var name: String {
    switch self {
    case .padded: "padding"
    case .trailingBits: "a bit that belongs to no byte"
    case .standardAlphabet: "the alphabet of base64"
    case .broken: "a line break"
    }
  }
}
