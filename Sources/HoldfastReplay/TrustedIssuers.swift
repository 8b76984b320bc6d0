import HoldfastCore

/// Trust in one public key, and perhaps in one MAC key.
public struct TrustedIssuers: IssuerTrust {
  /// A key that an issuer shares with the device, and its id.
  public struct Shared: Sendable {
    public let keyID: KeyID
    public let key: FixedBytes<32>

    public init(keyID: KeyID, key: FixedBytes<32>) {
      (self.keyID, self.key) = (keyID, key)
    }
  }

  public let keyID: KeyID
  public let publicKey: P256Point
  public let shared: Shared?

  public init(keyID: KeyID, publicKey: P256Point, shared: Shared? = nil) {
    (self.keyID, self.publicKey, self.shared) = (keyID, publicKey, shared)
  }

  public func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    if keyID == self.keyID { return .signing(publicKey) }
    guard let shared, keyID == shared.keyID, let key = Secret<32>(copying: shared.key.bytes) else { return nil }
    return .mac(key)
  }
}
