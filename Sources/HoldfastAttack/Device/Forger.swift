import HoldfastCore
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// A maker of tokens, with a key of the adversary's and, where the adversary has it, a trusted issuer's.
struct Forger: ~Copyable {
  private var own: P256PrivateKey
  private let trusted: TrustedIssuer?
  /// The keys whose public halves the adversary knows.
  let keys: KnownKeys

  init(trusted: TrustedIssuer?, point: P256Point?) throws(AttackFault) {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let drawn = try P256PrivateKey()
      var trustedID: KeyID?
      if let point { trustedID = try keyID(of: point, using: &cryptography) }
      keys = KnownKeys(
        own: drawn.publicPoint, ownID: try keyID(of: drawn.publicPoint, using: &cryptography), trusted: point,
        trustedID: trustedID)
      own = drawn
    } catch { throw .cryptography }
    self.trusted = trusted
  }

  /// Makes a token for an invented prover.
  mutating func token(_ draft: TokenDraft, of persona: Persona) throws(AttackFault) -> [UInt8] {
    do throws(CryptographyFailure) {
      let claims = draft.plan.claims(of: persona)
      let content = draft.contentEncoding == .jose ? try jws(claims, draft) : try cose(claims, draft)
      guard draft.isEncrypted else { return content }
      if draft.encoding == .jose { return try jwe(content, draft) }
      return try Self.encrypt(content, to: draft.recipient, by: Agreement(for: draft))
    } catch { throw .cryptography }
  }

  /// Signs bytes, or authenticates them in the way that the draft asks for.
  mutating func seal(_ input: [UInt8], as seal: TokenSeal) throws(CryptographyFailure) -> [UInt8] {
    switch seal {
    case .own: return [UInt8](try own.sign(try Self.digest(input)).bytes)
    case .trusted:
      guard let trusted else { throw CryptographyFailure() }
      return try trusted.signing { (key) throws(CryptographyFailure) in
        [UInt8](try key.sign(try Self.digest(input)).bytes)
      }
    case .mac(let key):
      var code = [UInt8](repeating: 0, count: HMAC.sha256.byteCount)
      var bytes = code.mutableSpan
      try HMAC.sha256.authenticate(input.span, key: key.span, into: &bytes)
      return code
    case .bytes(let bytes): return bytes
    }
  }

  private static func digest(_ input: [UInt8]) throws(CryptographyFailure) -> Digest {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(input.span)
    return try hash.finish()
  }
}

/// The agreement on a key with the recipient of a token.
struct Agreement: ~Copyable {
  /// The point that the token names.
  let point: P256Point
  /// The x coordinate on which both ends agree.
  let shared: Secret<32>

  /// Draws an ephemeral key, or takes the false one of a draft.
  init(for draft: TokenDraft) throws(CryptographyFailure) {
    guard let falsePoint = draft.falsePoint else {
      try self.init(with: draft.recipient)
      return
    }
    var secret = Secret<32>()
    secret.withMutableBytes { (bytes: inout MutableSpan<UInt8>) in bytes[31] = falsePoint.shared }
    self.init(point: falsePoint.point, shared: secret)
  }

  /// Draws an ephemeral key.
  init(with recipient: P256Point) throws(CryptographyFailure) {
    var secret = Secret<32>()
    var ephemeral = try P256PrivateKey()
    try ephemeral.agree(with: recipient, into: &secret)
    self.init(point: ephemeral.publicPoint, shared: secret)
  }

  private init(point: P256Point, shared: consuming Secret<32>) {
    self.point = point
    self.shared = shared
  }
}

/// Tokens in COSE.
extension Forger {
  /// Returns a `COSE_Sign1` or `COSE_Mac0` of claims, or the bare claims.
  private mutating func cose(
    _ claims: borrowing MeasurementClaims, _ draft: TokenDraft
  ) throws(CryptographyFailure) -> [UInt8] {
    var payload: [UInt8] = []
    claims.appendCBOR(to: &payload)
    if draft.hasUnknownClaim {
      // The head of a map with fewer than 23 pairs is one byte. This label sorts behind all others.
      payload[0] += 1
      payload.appendCBOR(integer: -75_099)
      payload.appendCBOR(unsigned: 1)
    }
    guard draft.isSigned else { return payload }
    let writer = COSEClaimsWriter(keyID: draft.keyID, isMAC: draft.seal.isMAC, type: draft.type)
    var input: [UInt8] = []
    writer.append(contextOf: payload.span, to: &input)
    let seal = try seal(input, as: draft.seal)
    do throws(EncodingFault) {
      let message: COSEText = try writer.message(payload: payload.span, seal: seal.span)
      return [UInt8](message.bytes)
    } catch { throw CryptographyFailure() }
  }

  /// Encrypts contents as a `COSE_Encrypt`.
  static func encrypt(
    _ content: [UInt8], to recipient: P256Point, by agreement: consuming Agreement
  ) throws(CryptographyFailure) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    let vector: FixedBytes<12>
    do throws(RandomFailure) { vector = try random.fixedBytes() } catch { throw CryptographyFailure() }
    var text = COSEText()
    do throws(EncodingFault) { try text.append(content.span) } catch { throw CryptographyFailure() }
    let encrypter = COSEEncrypter(device: recipient, deviceKeyID: try keyID(of: recipient, using: &cryptography))
    return try encrypter.message(
      plaintext: &text, contentKey: try encrypter.contentKey(from: agreement.shared, using: &cryptography),
      ephemeral: agreement.point, initializationVector: vector, using: &cryptography)
  }
}

extension Adversary {
  /// Makes a token for an invented prover. Unless `change` changes it, it is right.
  ///
  /// - Parameter isTrusted: whether a trusted issuer signs it, or the adversary does.
  mutating func makeToken(
    of persona: Persona, _ encoding: TokenEncoding, isTrusted: Bool,
    _ change: (inout TokenDraft) throws(AttackFault) -> Void = { _ in }
  ) throws(AttackFault) -> [UInt8] {
    var forger = try Forger(trusted: issuer, point: issuerPoint)
    var draft = TokenDraft(
      encoding, try plan(), to: descriptor.publicPoint, keys: forger.keys, isTrusted: isTrusted)
    try change(&draft)
    return try forger.token(draft, of: persona)
  }

  /// Presents a token of an invented prover on a new connection.
  mutating func present(
    _ encoding: TokenEncoding, isTrusted: Bool, _ change: (inout TokenDraft) throws(AttackFault) -> Void = { _ in }
  ) throws(AttackFault) -> Reply {
    let persona = try Persona.random(&random)
    let token = try makeToken(of: persona, encoding, isTrusted: isTrusted, change)
    let line = try connect()
    return exchange(try draft(on: line, as: persona, encoding, token), on: line)
  }
}
