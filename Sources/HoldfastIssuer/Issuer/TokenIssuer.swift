import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

/// The description of a device: its id and public key.
public typealias DeviceDescriptor = HoldfastFormats.DeviceDescriptor
/// The reasons why a ``DeviceDescriptor`` cannot be read.
public typealias KeyFault = HoldfastFormats.KeyFault

/// A maker of measurement tokens for apps that were appraised. It has no store, and decides nothing.
public struct TokenIssuer<Key: SigningKey & Sendable>: Sendable {
  /// The claim `iss` of the tokens.
  public let name: BoundedText<64>
  private let key: Key

  /// Creates a maker of tokens.
  ///
  /// - Parameters:
  ///   - name: The claim `iss` of the tokens, 1 to 64 bytes; informative.
  ///   - key: The key that signs them.
  public init(name: BoundedText<64>, key: Key) {
    (self.name, self.key) = (name, key)
  }

  /// The public key that devices must trust, as a JWK in JSON. Source: RFC 7517 §4, RFC 7518 §6.2.1.
  public var publicKeyJSON: String {
    String(decoding: PublicKeyJWK(point: key.publicPoint).json.compact(), as: UTF8.self)
  }

  /// Makes a token for an app and a device, with the system's random source.
  ///
  /// - Parameters:
  ///   - app: The app, from ``SubmittedEvidence/appraised(as:refusing:permitting:now:)``.
  ///   - device: The device, whose key its owner confirmed.
  ///   - generation: The claim `gen`, 1 to 2^53 - 1.
  ///   - options: The properties of the token.
  ///   - now: The present time, in Unix seconds, at most 2^53 - 2.
  /// - Throws: ``TokenError``: `outOfRange` for a time, a generation or an option out of range.
  public func issue(
    to app: borrowing AppraisedApp, for device: DeviceDescriptor, generation: UInt64,
    options: IssuanceOptions = IssuanceOptions(), now: UInt64
  ) throws(TokenError) -> IssuedToken {
    var random = SystemRandom()
    return try issue(to: app, for: device, generation: generation, options: options, now: now, random: &random)
  }

  /// The same with a random source of your own.
  public func issue(
    to app: borrowing AppraisedApp, for device: DeviceDescriptor, generation: UInt64,
    options: IssuanceOptions = IssuanceOptions(), now: UInt64, random: inout some RandomSource & ~Copyable
  ) throws(TokenError) -> IssuedToken {
    let claims: MeasurementClaims
    do throws(TokenWritingFault) {
      claims = try MeasurementClaims.forToken(
        of: app, from: name, for: device.deviceID, options: options, generation: generation, now: now, random: &random)
    } catch { throw TokenError(error) }
    return try write(claims, to: device, options: options, random: &random)
  }

  /// Signs the claims and encrypts them to the device; signs the terms.
  func write(
    _ claims: borrowing MeasurementClaims, to device: DeviceDescriptor, options: IssuanceOptions,
    random: inout some RandomSource & ~Copyable
  ) throws(TokenError) -> IssuedToken {
    var secrets = IssuerSecrets(signing: key)
    var cryptography = OpenSSLCryptography()
    do throws(TokenWritingFault) {
      let token = try MeasurementTokenWriter(format: options.format).write(
        claims, to: device.publicPoint, issuer: &secrets, random: &random, using: &cryptography)
      return try IssuedToken(token, claims, conditions: options.conditions, key: &secrets.signing)
    } catch { throw TokenError(error) }
  }
}

/// A measurement token with its claims, except the secret ones. The prover cannot read them in the token, which is
/// encrypted to the device.
public struct IssuedToken: Sendable, Equatable {
  /// The token, at most 3072 bytes.
  public let bytes: [UInt8]
  /// The id of the token (claim `jti`), 16 bytes. It is the issuer's, to revoke the token later, and not for the prover.
  public let tokenID: TokenID
  /// The time at which the token expires, in Unix seconds (claim `exp`).
  public let expires: UInt64
  /// The terms of the token for the prover, a compact JWS of at most 50,000 bytes; nil if there are no conditions.
  public let terms: [UInt8]?
  /// The claims, except the secret ones.
  package let claims: [Claim: ClaimValue]

  /// Creates a token from its bytes and the claims in it, and signs its terms if there are conditions.
  init(
    _ bytes: [UInt8], _ claims: borrowing MeasurementClaims, conditions: Conditions,
    key: inout some SigningKey & ~Copyable
  ) throws(TokenWritingFault) {
    (self.bytes, tokenID, expires, self.claims) = (bytes, claims.tokenID, claims.expires, claims.values)
    terms = try signedTerms(
      of: bytes, subject: claims.subject, version: claims.version, from: claims.issuer, conditions: conditions,
      now: claims.issuedAt, key: &key)
  }
}

/// The reasons why a token could not be made.
public enum TokenError: Error, Equatable {
  /// The time, the generation or an option is out of range, or there are more than 16 commands.
  case outOfRange
  /// The token would be longer than the 3072 bytes that a device accepts.
  case tooLong
  /// The key did not sign, the device's key is not on the curve, or the cryptographic library or the random source failed.
  case cryptography

  init(_ fault: TokenWritingFault) {
    switch fault {
    case .claims, .tooManyCommands: self = .outOfRange
    case .tooLong: self = .tooLong
    case .noMACSecret, .cryptography: self = .cryptography
    }
  }
}
