/// What a measurement token says, decoded and complete but not yet believed.
///
/// The two measurements and the proof key are secrets: who knows them can prove in the app's place.
public struct MeasurementClaims: ~Copyable, Sendable {
  /// `iss`, at most 64 bytes; informative.
  public let issuer: BoundedText<64>
  /// `sub`, at most 64 bytes: the app that was approved.
  public let subject: BoundedText<64>
  /// `aud`: the device that it is for.
  public let audience: DeviceID
  /// `exp`, Unix seconds: expired when not above now.
  public let expires: UInt64
  /// `iat`, Unix seconds, below ``expires``.
  public let issuedAt: UInt64
  /// `jti`, 16 bytes.
  public let tokenID: TokenID
  /// `imh`: the integrity measurement, 32 bytes.
  public let integrity: Secret<32>
  /// `dmh`: the device measurement, 32 bytes.
  public let device: Secret<32>
  /// `mpk`: the measurement proof key, 16 bytes.
  public let proofKey: Secret<16>
  /// `gen`: raised by the issuer to revoke older tokens.
  public let generation: UInt64
  /// `max`: how many rounds may be accepted; nil without a limit.
  public let maximumUses: UInt64?
  /// `cmd`: what it may do; nil for all that policy allows.
  public let commands: CommandList?
  /// `ver`; 0.0.0 where absent.
  public let version: AppVersion
  /// `usr`, at most 32 bytes: whose codes go with it; nil for any enrolled user's.
  public let user: BoundedText<32>?

  /// Puts claims together, as an issuer does and a decoder; that makes nobody believe them.
  ///
  /// Numbers are at most 2^53 - 1, and `issuedAt` is below `expires`; a version of 0.0.0 is written as none.
  public init(
    issuer: BoundedText<64>, subject: BoundedText<64>, audience: DeviceID, expires: UInt64, issuedAt: UInt64,
    tokenID: TokenID, integrity: consuming Secret<32>, device: consuming Secret<32>, proofKey: consuming Secret<16>,
    generation: UInt64, maximumUses: UInt64?, commands: CommandList?, version: AppVersion, user: BoundedText<32>?
  ) {
    self.issuer = issuer
    self.subject = subject
    self.audience = audience
    self.expires = expires
    self.issuedAt = issuedAt
    self.tokenID = tokenID
    self.integrity = integrity
    self.device = device
    self.proofKey = proofKey
    self.generation = generation
    self.maximumUses = maximumUses
    self.commands = commands
    self.version = version
    self.user = user
  }

  /// A second copy, made on purpose.
  borrowing func copy() -> MeasurementClaims {
    MeasurementClaims(
      issuer: issuer, subject: subject, audience: audience, expires: expires, issuedAt: issuedAt, tokenID: tokenID,
      integrity: integrity.copy(), device: device.copy(), proofKey: proofKey.copy(), generation: generation,
      maximumUses: maximumUses, commands: commands, version: version, user: user)
  }
}

/// Claims being collected in whatever order they come.
struct PartialClaims: ~Copyable {
  var issuer: BoundedText<64>?
  var subject: BoundedText<64>?
  var audience: DeviceID?
  var expires: UInt64?
  var issuedAt: UInt64?
  var tokenID: TokenID?
  var integrity: Secret<32>?
  var device: Secret<32>?
  var proofKey: Secret<16>?
  var generation: UInt64?
  var maximumUses: UInt64?
  var commands: CommandList?
  var version: AppVersion?
  var user: BoundedText<32>?

  init() {}

  /// The claims, once all required ones are there and `iat` is below `exp`.
  consuming func complete() throws(EncodingFault) -> MeasurementClaims {
    guard let issuer, let subject, let audience, let expires, let issuedAt, let tokenID, let generation,
      let integrity, let device, let proofKey, issuedAt < expires
    else { throw .unexpected }
    return MeasurementClaims(
      issuer: issuer, subject: subject, audience: audience, expires: expires, issuedAt: issuedAt, tokenID: tokenID,
      integrity: integrity, device: device, proofKey: proofKey, generation: generation, maximumUses: maximumUses,
      commands: commands, version: version ?? .zero, user: user)
  }
}

extension FixedBytes where count == 16 {
  /// Reads a device id as `aud` writes it: 22 characters of base64url.
  init(audience text: Span<UInt8>) throws(EncodingFault) {
    guard text.count == 22 else { throw .unexpected }
    var buffer = ByteBuffer<16>()
    try buffer.append(base64URL: text)
    guard let id = FixedBytes(buffer.bytes) else { throw .unexpected }
    self = id
  }
}
