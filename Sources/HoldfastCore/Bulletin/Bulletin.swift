/// A bulletin of an issuer that was decoded, and whose signature was not checked. The spans point into the bytes.
///
/// Source: docs/couriers.md, Bulletins.
public struct Bulletin: ~Escapable {
  private let issued: COSEIssuedClaims
  /// The claims, which anyone may have made.
  public let claims: BulletinClaims
  /// The key that the bulletin names as its issuer's.
  public var issuer: KeyID { issued.issuerKeyID }

  /// The length of the longest bulletin, in bytes.
  public static var maximumByteCount: Int { TokenBuffer.capacity }

  /// Decodes a signed bulletin, which is not encrypted.
  ///
  /// - Parameters:
  ///   - bytes: the bulletin.
  ///   - device: the device that the bytes were encrypted to; nil if they were not. Only a bulletin that was, and is for that
  ///     device, may name users.
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure, `tooLong` above 3072 bytes.
  @_lifetime(copy bytes)
  public init(_ bytes: Span<UInt8>, sealedTo device: DeviceID? = nil) throws(EncodingFault) {
    guard bytes.count <= Self.maximumByteCount else { throw .tooLong }
    issued = try COSEIssuedClaims(bytes, type: COSE.bulletinType)
    guard issued.isSigned else { throw .unexpected }
    claims = try BulletinClaims(issued.payload)
    #if !hasFeature(Embedded)
    guard claims.users.count == 0 || device?.bytes.elementsEqual(claims.audience.bytes) == true else {
      throw .unexpected
    }
    #endif
  }

  /// Returns whether the bytes look like a bulletin that is encrypted to a device: a `COSE_Encrypt`.
  package static func isSealed(_ bytes: Span<UInt8>) -> Bool {
    var reader = CBORReader(bytes)
    guard let tag = try? reader.tag() else { return false }
    return tag == COSE.encryptTag
  }

  /// Checks the signature.
  ///
  /// - Parameter key: the issuer's key, whose id the bulletin names.
  @_lifetime(copy self)
  package func verified<Crypto: Cryptography & ~Copyable>(
    by key: P256Point, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> VerifiedBulletin {
    try issued.verify(by: key, using: &cryptography)
    return VerifiedBulletin(self)
  }
}

/// A bulletin whose signature was checked. Whether it counts at a device is not decided yet.
public struct VerifiedBulletin: ~Escapable {
  /// The key that signed the bulletin.
  public let issuer: KeyID
  /// The claims.
  public let claims: BulletinClaims

  @_lifetime(copy bulletin)
  fileprivate init(_ bulletin: Bulletin) {
    issuer = bulletin.issuer
    claims = bulletin.claims
  }
}

/// The result of delivering a bulletin to a device.
///
/// Source: docs/couriers.md, Rules for the device.
public enum BulletinResult: UInt8, Sendable, CaseIterable {
  /// The device has taken the bulletin: it is durable.
  case taken = 0
  /// The device has this bulletin or a newer one.
  case known = 1
  /// The bulletin is for other devices.
  case notAddressed = 2
  /// The device needs the bulletins before this one.
  case missed = 3
  /// The device has no room for it.
  case full = 4
  /// The bulletin is malformed, its key is not trusted, or its contents are not permitted.
  case refused = 5
  /// The peer must be accepted once more before the device checks a signature.
  case busy = 6
}

/// The time and the permissions by which a device judges a bulletin.
public struct BulletinTerms: Sendable {
  /// The latest time at which the bulletin may have been issued, in Unix seconds.
  public let latestIssue: UInt64
  /// Whether the bulletin's key may introduce others.
  public let mayIntroduce: Bool
  /// The real clock, in Unix seconds; nil if there is none.
  public let realClock: UInt64?

  /// Creates terms.
  public init(latestIssue: UInt64, mayIntroduce: Bool, realClock: UInt64?) {
    (self.latestIssue, self.mayIntroduce, self.realClock) = (latestIssue, mayIntroduce, realClock)
  }
}

/// Returns the id of a group of devices: the first 16 bytes of SHA-256("holdfast/1 group" ‖ 0x00 ‖ name).
///
/// - Parameters:
///   - name: the name of the group, 1 to 32 bytes.
///   - cryptography: an implementation of the primitives.
public func audience<Crypto: Cryptography & ~Copyable>(
  ofGroup name: BoundedText<32>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> AudienceID {
  var hash = try cryptography.sha256()
  hash.append(domain: "holdfast/1 group")
  hash.append(name.bytes)
  let digest: Digest = try hash.finish()
  return AudienceID(digest.bytes.extracting(0..<16))!
}
