import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A writer of bulletins.
///
/// Source: docs/couriers.md, Bulletins.
public struct BulletinWriter: Sendable {
  private let issuer: KeyID

  /// Creates a writer for the key that signs tokens.
  ///
  /// - Parameter point: the public half of the key.
  /// - Throws: `CryptographyFailure` if the cryptographic library fails.
  public init(of point: P256Point) throws(CryptographyFailure) {
    var cryptography = OpenSSLCryptography()
    issuer = try keyID(of: point, using: &cryptography)
  }

  /// Writes the bulletins that say everything in `contents`, each the predecessor of the next.
  ///
  /// - Parameters:
  ///   - contents: what they say.
  ///   - audience: the device or the group that they are for.
  ///   - last: the number of the last bulletin for the audience; 0 if there was none.
  ///   - isComplete: whether the first one needs none before it.
  ///   - milliseconds: the time, in milliseconds since 1970.
  ///   - device: the device to seal them to; nil if anyone may read them. Users can only be named to a device.
  ///   - key: the key that the writer was created for.
  ///   - random: the source of random bytes for sealing.
  /// - Throws: as ``write(_:_:sealedTo:key:random:)``.
  public func write<Key: SigningKey & ~Copyable, Random: RandomSource & ~Copyable>(
    all contents: BulletinContents, for audience: AudienceID, after last: UInt64, isComplete: Bool,
    milliseconds: UInt64,
    sealedTo device: P256Point? = nil, key: inout Key, random: inout Random
  ) throws(BulletinFault) -> [IssuedBulletin] {
    var bulletins: [IssuedBulletin] = []
    for part in contents.parts() {
      let stamp = BulletinStamp(
        after: bulletins.last?.stamp.number ?? last, isComplete: isComplete && bulletins.isEmpty,
        milliseconds: milliseconds, audience: audience)
      bulletins.append(IssuedBulletin(stamp, try write(part, stamp, sealedTo: device, key: &key, random: &random)))
    }
    return bulletins
  }

  /// Writes one bulletin, of at most 3072 bytes.
  ///
  /// - Throws: `tooLong`; `notSealed` if it names users and is not sealed; `cryptography`, also if the random source fails.
  public func write<Key: SigningKey & ~Copyable, Random: RandomSource & ~Copyable>(
    _ contents: BulletinContents, _ stamp: BulletinStamp, sealedTo device: P256Point? = nil, key: inout Key,
    random: inout Random
  ) throws(BulletinFault) -> [UInt8] {
    guard device != nil || contents.users.isEmpty else { throw .notSealed }
    let payload = contents.claims(stamp)
    let writer = COSEClaimsWriter(keyID: issuer, isMAC: false, type: COSE.bulletinType)
    var cryptography = OpenSSLCryptography()
    let signature: FixedBytes<64>
    do throws(CryptographyFailure) {
      var hash = cryptography.sha256()
      writer.append(contextOf: payload.span, to: &hash)
      signature = try key.sign(try hash.finish())
    } catch { throw .cryptography }
    var text: ByteBuffer<3072>
    do throws(EncodingFault) { text = try writer.message(payload: payload.span, seal: signature.bytes) } catch {
      throw .tooLong
    }
    var bulletin: [UInt8] = []
    if let device {
      bulletin = try seal(&text, to: device, random: &random, using: &cryptography)
    } else {
      bulletin.append(text.bytes)
    }
    guard bulletin.count <= Bulletin.maximumByteCount else { throw .tooLong }
    return bulletin
  }

  private func seal<Random: RandomSource & ~Copyable>(
    _ text: inout ByteBuffer<3072>, to device: P256Point, random: inout Random,
    using cryptography: inout OpenSSLCryptography
  ) throws(BulletinFault) -> [UInt8] {
    let vector: FixedBytes<12>
    do throws(RandomFailure) { vector = try random.fixedBytes() } catch { throw .cryptography }
    do throws(CryptographyFailure) {
      var ephemeral = try P256PrivateKey()
      let encrypter = COSEEncrypter(device: device, deviceKeyID: try keyID(of: device, using: &cryptography))
      return try encrypter.message(
        plaintext: &text, ephemeral: &ephemeral, initializationVector: vector, using: &cryptography)
    } catch { throw .cryptography }
  }
}

/// A bulletin with its stamp, which couriers need although a sealed one hides it.
public struct IssuedBulletin: Sendable, Equatable {
  /// The number, time and audience.
  public let stamp: BulletinStamp
  /// The bulletin, at most 3072 bytes.
  public let bytes: [UInt8]

  /// Creates a bulletin from its parts.
  public init(_ stamp: BulletinStamp, _ bytes: [UInt8]) { (self.stamp, self.bytes) = (stamp, bytes) }
}

/// The reasons why a bulletin was not written.
public enum BulletinFault: Error, Equatable {
  /// The bulletin would have more than 3072 bytes.
  case tooLong
  /// It names users, and is not sealed to a device.
  case notSealed
  /// The key, the cryptographic library or the random source failed.
  case cryptography
}
