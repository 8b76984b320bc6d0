import HoldfastCore
import HoldfastIssuer
import HoldfastOpenSSL

/// A token that the adversary is about to make, each part of which can be changed.
///
/// Unless an attack changes it, it is right, and so is accepted if a trusted issuer's key signs it. The prover in it is an
/// invented one, so nothing in it is a secret.
struct TokenDraft {
  /// The format of the token as M2 states it, in which it is encrypted.
  let encoding: TokenEncoding
  /// The keys whose public halves the adversary knows.
  let keys: KnownKeys
  /// The claims.
  var plan: TokenPlan
  /// The format of the signed claims within the token.
  var contentEncoding: TokenEncoding
  /// The signature or MAC.
  var seal: TokenSeal
  /// The key id in the header of the signed claims.
  var keyID: KeyID
  /// The type in that header, which ends with `+jwt` in JOSE.
  var type: StaticString = COSE.measurementTokenType
  /// Whether a signature, or bytes in its place, stand around the claims.
  var isSigned = true
  /// Whether the signed claims are encrypted.
  var isEncrypted = true
  /// Whether there is a claim that no token has.
  var hasUnknownClaim = false
  /// The public key of the recipient.
  var recipient: P256Point
  /// A point that is given out as the ephemeral key; nil for an honest one.
  var falsePoint: FalsePoint?
  /// The changes that only a token in JOSE can have.
  var jose = JOSEChanges()

  init(_ encoding: TokenEncoding, _ plan: TokenPlan, to recipient: P256Point, keys: KnownKeys, isTrusted: Bool) {
    (self.encoding, contentEncoding, self.plan, self.recipient, self.keys) = (encoding, encoding, plan, recipient, keys)
    seal = isTrusted ? .trusted : .own
    keyID = isTrusted ? keys.trustedID ?? KeyID() : keys.ownID
  }

  /// Encrypts the token to a key that nobody has.
  mutating func addressToAnotherKey() throws(AttackFault) {
    do throws(CryptographyFailure) { recipient = try P256PrivateKey().publicPoint } catch { throw .cryptography }
  }

  /// Takes the trusted issuer's key id, whoever signs.
  mutating func claimTrust() { keyID = keys.trustedID ?? KeyID() }
}

/// The public keys of those who sign tokens.
struct KnownKeys {
  /// The adversary's own key.
  let own: P256Point
  let ownID: KeyID
  /// The key of an issuer that the device trusts, if it is known.
  let trusted: P256Point?
  let trustedID: KeyID?
}

/// The authentication of a token.
enum TokenSeal: Sendable {
  /// A signature with the key of an issuer that the device trusts.
  case trusted
  /// A signature with the adversary's own key.
  case own
  /// A MAC under any key.
  case mac([UInt8])
  /// Any bytes in the place of a signature.
  case bytes([UInt8])

  var isMAC: Bool { if case .mac = self { true } else { false } }
}

/// A point that is not on the curve, and what a device that does not notice it computes with its private key.
///
/// The formulas for the addition of points do not use the curve's constant b. So such a device computes on another curve, where
/// the point has an order so small that there are no others to guess among.
struct FalsePoint: Sendable {
  let x, y: UInt8
  /// The last byte of the x coordinate that is the shared secret; the others are zero.
  let shared: UInt8

  var point: P256Point { P256Point(x: Self.number(x), y: Self.number(y)) }

  private static func number(_ value: UInt8) -> FixedBytes<32> {
    var bytes = FixedBytes<32>()
    bytes[31] = value
    return bytes
  }
}

/// The changes that only a token in JOSE can have.
struct JOSEChanges: Sendable {
  /// A part of the JWS, or of the JWE around it.
  enum Part: Sendable, Hashable {
    case signedHeader, claims, signature
    case encryptedHeader, ephemeralKey, encryptedKey, vector, ciphertext, tag
  }

  /// A way to write a part that is not that of base64url.
  enum Spelling: Sendable {
    /// With padding.
    case padded
    /// With a bit set that belongs to no byte.
    case trailingBits
    /// In the alphabet of base64.
    case standardAlphabet
    /// With a line break in its middle.
    case broken
  }

  /// The changes of the members of each object, in this order.
  var members: [Part: [MemberChange]] = [:]
  /// The parts that are spelt in another way. Signature and encryption cover the headers and the claims as they are spelt.
  var spellings: [Part: Spelling] = [:]
  /// Bytes that follow an object.
  var tails: [Part: [UInt8]] = [:]
  /// The key management that is carried out and, unless it is changed, named.
  var management = JWEKeyManagement.ecdhES
  /// The content encryption, likewise.
  var encryption = JWEContentEncryption.a256GCM
  /// The bytes in place of the encrypted key; nil for the right ones.
  var encryptedKey: [UInt8]?
  /// The length of the authentication tag, in bytes, if it is cut.
  var tagByteCount: Int?
  /// Whether the contents are compressed.
  var isCompressed = false
  /// The change of the signature.
  var signature: SignatureForm = .fixed

  /// The form of a signature.
  enum SignatureForm: Sendable {
    /// r and s of 32 bytes each.
    case fixed
    /// A sequence in DER, as in a certificate.
    case der
    /// One byte follows s.
    case extended
  }

  /// Changes a member of an object.
  mutating func change(_ part: Part, _ changes: MemberChange...) { members[part, default: []] += changes }
}

/// A change of an object in JSON. Values are texts in JSON.
enum MemberChange: Sendable {
  /// Gives a member another value.
  case set(String, String)
  /// Adds a member behind the others, whose name may be there already.
  case add(String, String)
  /// Adds a member before the others.
  case addFirst(String, String)
  /// Leaves a member out.
  case remove(String)

  func apply(to members: inout [(name: String, value: String)]) {
    switch self {
    case .set(let name, let value):
      for index in members.indices where members[index].name == name { members[index].value = value }
    case .add(let name, let value): members.append((name, value))
    case .addFirst(let name, let value): members.insert((name, value), at: 0)
    case .remove(let name): members.removeAll { $0.name == name }
    }
  }
}
