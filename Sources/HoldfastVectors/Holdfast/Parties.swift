import HoldfastCore
import HoldfastOpenSSL
import HoldfastReplay

/// The device of a group of tests and whom it trusts: one issuer, and where the group has one, an issuer's MAC key.
struct Parties {
  private let devicePrivateKey: FixedBytes<32>
  let deviceKeyID: KeyID
  let deviceID: DeviceID
  let trust: TrustedIssuers

  /// Reads them, and checks that the keys and their ids belong together.
  init(_ group: VectorNode) throws(VectorFault) {
    devicePrivateKey = try group.member("devicePrivateKey").fixed()
    let devicePublicKey = try group.member("devicePublicKey")
    let deviceKeyID = try group.member("deviceKid")
    let issuerPublicKey = try group.member("issuerPublicKey")
    let issuerKeyID = try group.member("issuerKid")
    deviceID = try group.member("deviceId").fixed()
    self.deviceKeyID = try deviceKeyID.fixed()
    let macKey = group.optional("macKey")
    let macKeyID = group.optional("macKid")
    var shared: TrustedIssuers.Shared?
    if let macKey, let macKeyID {
      shared = TrustedIssuers.Shared(keyID: try macKeyID.fixed(), key: try macKey.fixed())
    }
    trust = TrustedIssuers(
      keyID: try issuerKeyID.fixed(), publicKey: try issuerPublicKey.fixed(), shared: shared)
    let devicePoint: P256Point = try devicePublicKey.fixed()

    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      guard try deviceKey().publicPoint == devicePoint else { throw CryptographyFailure() }
    } catch { throw devicePublicKey.fault(.keysDiffer) }
    do throws(CryptographyFailure) {
      guard try keyID(of: devicePoint, using: &cryptography) == self.deviceKeyID else { throw CryptographyFailure() }
    } catch { throw deviceKeyID.fault(.keysDiffer) }
    do throws(CryptographyFailure) {
      guard try keyID(of: trust.publicKey, using: &cryptography) == trust.keyID else { throw CryptographyFailure() }
    } catch { throw issuerKeyID.fault(.keysDiffer) }
    guard let shared, let macKeyID else {
      if let lonely = macKey ?? macKeyID { throw lonely.fault(.keysDiffer) }
      return
    }
    do throws(CryptographyFailure) {
      let id = try keyID(of: .mac(secret(shared.key)), using: &cryptography)
      guard id == shared.keyID else { throw CryptographyFailure() }
    } catch { throw macKeyID.fault(.keysDiffer) }
  }

  /// The device's private key.
  func deviceKey() throws(CryptographyFailure) -> P256PrivateKey {
    try P256PrivateKey(scalar: secret(devicePrivateKey))
  }

  /// Opens a token as this device does: decrypted, of an issuer that it trusts, and for this device.
  func open(
    _ token: [UInt8], encoding: TokenEncoding, acceptsUnsigned: Bool = false, acceptsMAC: Bool = false
  ) throws(Refusal) -> VerifiedToken {
    var opener = TokenOpener()
    var trust = trust
    var cryptography = OpenSSLCryptography()
    var key: P256PrivateKey
    do throws(CryptographyFailure) { key = try deviceKey() } catch { throw Refusal(reason: "no device key") }
    var verified = VerifiedToken()
    do throws(TokenFault) {
      try opener.open(
        token.span, encoding: encoding, key: &key, keyID: deviceKeyID, trust: &trust,
        acceptsUnsigned: acceptsUnsigned, acceptsMAC: acceptsMAC, using: &cryptography, into: &verified)
    } catch { throw Refusal(reason: "token: \(error)") }
    guard verified.claims.audience == deviceID else { throw Refusal(reason: "token: another audience") }
    return verified
  }
}
