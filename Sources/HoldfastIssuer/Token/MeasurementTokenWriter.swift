import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The formats of a measurement token.
package enum MeasurementTokenFormat: Sendable, Hashable {
  /// `COSE_Sign1` in `COSE_Encrypt`.
  case cose
  /// `COSE_Mac0` in `COSE_Encrypt`, with the key that the issuer shares with the device.
  case macCOSE
  /// Bare claims in `COSE_Encrypt`. Anyone can write such a token, and devices refuse it unless their policy permits
  /// it.
  case unsignedCOSE
  /// A compact JWS in a compact JWE with `ECDH-ES`.
  case jose
  /// A compact JWS in a compact JWE with `ECDH-ES+A256KW`.
  case joseKeyWrap

  /// The encoding that M2 states for a token of this format.
  package var encoding: TokenEncoding {
    switch self {
    case .cose, .macCOSE, .unsignedCOSE: .cose
    case .jose, .joseKeyWrap: .jose
    }
  }
}

/// The reasons why a token could not be written.
package enum TokenWritingFault: Error, Equatable {
  /// A time, a number or a text is out of range, or `iat` is not below `exp`.
  case claims
  /// There are more commands than a token can carry.
  case tooManyCommands
  /// The token is longer than the 3072 bytes that a device accepts.
  case tooLong
  /// The issuer shares no MAC keys.
  case noMACSecret
  /// The device's point is not on the curve, or libcrypto or the random source failed.
  case cryptography
}

/// A writer of measurement tokens, which the issuer signs or authenticates and then encrypts to one device.
package struct MeasurementTokenWriter: Sendable {
  /// The format of the tokens.
  package let format: MeasurementTokenFormat

  /// Creates a writer.
  package init(format: MeasurementTokenFormat = .cose) {
    self.format = format
  }

  /// Writes one token.
  ///
  /// Source: RFC 9052 §4, §5 and §6; RFC 7515 and RFC 7516.
  ///
  /// - Parameters:
  ///   - claims: The claims of the token.
  ///   - device: The device's public point.
  ///   - issuer: The issuer's keys, which ``MeasurementTokenFormat/unsignedCOSE`` does not use.
  ///   - random: The source of the ephemeral key (32 bytes), with key wrap the content key (32 bytes), and the
  ///     initialization vector (12 bytes), in this order.
  /// - Returns: The token, at most 3072 bytes.
  package func write<Key: SigningKey & ~Copyable>(
    _ claims: borrowing MeasurementClaims, to device: P256Point, issuer: inout IssuerSecrets<Key>,
    random: inout some RandomSource & ~Copyable, using cryptography: inout OpenSSLCryptography
  ) throws(TokenWritingFault) -> [UInt8] {
    try claims.checkRanges()
    let token =
      switch format {
      case .cose, .macCOSE, .unsignedCOSE:
        try writeCOSE(claims, to: device, issuer: &issuer, random: &random, using: &cryptography)
      case .jose, .joseKeyWrap:
        try writeJOSE(claims, to: device, issuer: &issuer.signing, random: &random, using: &cryptography)
      }
    guard token.count <= TokenOpener.maximumTokenByteCount else { throw .tooLong }
    return token
  }

  private func writeCOSE<Key: SigningKey & ~Copyable>(
    _ claims: borrowing MeasurementClaims, to device: P256Point, issuer: inout IssuerSecrets<Key>,
    random: inout some RandomSource & ~Copyable, using cryptography: inout OpenSSLCryptography
  ) throws(TokenWritingFault) -> [UInt8] {
    var plaintext = try cosePlaintext(claims, to: device, issuer: &issuer, using: &cryptography)
    var ephemeral = try ephemeralP256Key(random: &random)
    let vector: FixedBytes<12>
    do throws(RandomFailure) { vector = try random.fixedBytes() } catch { throw .cryptography }
    do throws(CryptographyFailure) {
      let encrypter = COSEEncrypter(device: device, deviceKeyID: try keyID(of: device, using: &cryptography))
      return try encrypter.message(
        plaintext: &plaintext, ephemeral: &ephemeral, initializationVector: vector, using: &cryptography)
    } catch { throw .cryptography }
  }

  private func cosePlaintext<Key: SigningKey & ~Copyable>(
    _ claims: borrowing MeasurementClaims, to device: P256Point, issuer: inout IssuerSecrets<Key>,
    using cryptography: inout OpenSSLCryptography
  ) throws(TokenWritingFault) -> COSEText {
    var payload = COSEText()
    do throws(EncodingFault) { try claims.appendCBOR(to: &payload) } catch { throw .tooLong }
    switch format {
    case .cose: return try sign(payload, key: &issuer.signing, using: &cryptography)
    case .macCOSE:
      let key: Secret<32>?
      do throws(CryptographyFailure) {
        key = try issuer.macKey(for: claims.audience, device, using: &cryptography)
      } catch { throw .cryptography }
      guard let key else { throw .noMACSecret }
      return try authenticate(payload, key: key, using: &cryptography)
    case .unsignedCOSE, .jose, .joseKeyWrap: return payload
    }
  }

  private func sign(
    _ payload: borrowing COSEText, key: inout some SigningKey & ~Copyable, using cryptography: inout OpenSSLCryptography
  ) throws(TokenWritingFault) -> COSEText {
    let writer: COSEClaimsWriter
    let signature: FixedBytes<64>
    do throws(CryptographyFailure) {
      writer = COSEClaimsWriter(keyID: try keyID(of: key.publicPoint, using: &cryptography), isMAC: false)
      var hash = cryptography.sha256()
      writer.append(contextOf: payload.bytes, to: &hash)
      signature = try key.sign(hash.finish())
    } catch { throw .cryptography }
    do throws(EncodingFault) {
      return try writer.message(payload: payload.bytes, seal: signature.bytes)
    } catch { throw .tooLong }
  }

  private func authenticate(
    _ payload: borrowing COSEText, key: consuming Secret<32>, using cryptography: inout OpenSSLCryptography
  ) throws(TokenWritingFault) -> COSEText {
    let writer: COSEClaimsWriter
    let tag: Digest
    do throws(CryptographyFailure) {
      var mac = try key.withBytes { (bytes: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hmacSHA256(key: bytes)
      }
      writer = COSEClaimsWriter(keyID: try keyID(of: .mac(key), using: &cryptography), isMAC: true)
      writer.append(contextOf: payload.bytes, to: &mac)
      tag = try mac.finish()
    } catch { throw .cryptography }
    do throws(EncodingFault) {
      return try writer.message(payload: payload.bytes, seal: tag.bytes)
    } catch { throw .tooLong }
  }

  private func writeJOSE(
    _ claims: borrowing MeasurementClaims, to device: P256Point, issuer: inout some SigningKey & ~Copyable,
    random: inout some RandomSource & ~Copyable, using cryptography: inout OpenSSLCryptography
  ) throws(TokenWritingFault) -> [UInt8] {
    var payload = TokenPartBuffer()
    do throws(EncodingFault) { try claims.appendJSON(to: &payload) } catch { throw .tooLong }
    let id: KeyID
    do throws(CryptographyFailure) {
      id = try keyID(of: device, using: &cryptography)
    } catch { throw .cryptography }
    let recipient = JWERecipient(
      curve: .p256, point: [UInt8](device.bytes), management: format == .jose ? .ecdhES : .ecdhESA256KW,
      encryption: .a256GCM, keyID: base64URL(id.bytes))
    do throws(JOSEFault) {
      let signed = try signES256(payload.bytes, type: "holdfast-mt+jwt", key: &issuer, using: &cryptography)
      return try recipient.seal(signed.bytes, contentType: "JWT", random: &random)
    } catch {
      throw error == .cryptography ? .cryptography : .tooLong
    }
  }
}

/// Generates a P-256 key from `random`. Source: FIPS 186-5 §A.2.2.
private func ephemeralP256Key(
  random: inout some RandomSource & ~Copyable
) throws(TokenWritingFault) -> P256PrivateKey {
  for _ in 0..<128 {
    let scalar: Secret<32>
    do throws(RandomFailure) { scalar = try random.secret() } catch { throw .cryptography }
    do throws(CryptographyFailure) { return try P256PrivateKey(scalar: scalar) } catch { continue }
  }
  throw .cryptography
}

extension MeasurementClaims {
  /// Writes the claims as a JWT claims set.
  ///
  /// Source: RFC 7519 §4. Timing: the base64 encoding of the secrets uses no tables.
  package borrowing func appendJSON<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    var separator: StaticString = "{"
    for claim in Claim.all where has(claim) {
      try sink.append(separator)
      separator = ","
      try sink.append("\"")
      try sink.append(claim.name)
      try sink.append("\":")
      if let value = self[claim] {
        try sink.append(value.jwtJSON.compact().span)
      } else {
        try sink.append("\"")
        try withSecret(claim) { (bytes) throws(Sink.Failure) in try sink.append(asPaddedBase64: bytes) }
        try sink.append("\"")
      }
    }
    try sink.append("}")
  }
}

extension ClaimValue {
  /// The value as it is written in a JWT.
  fileprivate var jwtJSON: JSONValue {
    switch self {
    case .text(let text): .string(text)
    case .number(let number): .integer(number)
    case .bytes(let bytes): .string(base64URL(bytes.span))
    case .texts(let texts): .array(texts.map { .string($0) })
    case .version(let version): .array([version.major, version.minor, version.patch].map { .integer($0) })
    }
  }
}
