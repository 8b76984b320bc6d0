/// What is kept of a component at its baseline, to tell later whether it changed; neither digest nor measurement follows
/// from it.
///
/// `HMAC-SHA-256(salt, "holdfast/1 explain" ‖ 0x00 ‖ id ‖ 0x00 ‖ digest)[0..<8]`.
public struct ComponentFingerprint: Sendable, Hashable {
  /// The component.
  public let id: ComponentID
  /// 8 bytes.
  public let fingerprint: FixedBytes<8>

  public init(id: ComponentID, fingerprint: FixedBytes<8>) {
    self.id = id
    self.fingerprint = fingerprint
  }

  /// Takes the fingerprint of a component under a configuration's salt of 32 bytes.
  ///
  /// - Throws: when the cryptographic library fails.
  public init<Backend: Cryptography & ~Copyable>(
    of component: Component, salt: FixedBytes<32>, using cryptography: inout Backend
  ) throws(CryptographyFailure) {
    var mac = try cryptography.hmacSHA256(key: salt.bytes)
    mac.append(domain: "holdfast/1 explain")
    mac.append(component.id.bytes)
    mac.append(0)
    mac.append(component.digest.bytes)
    let whole = try mac.finish()
    var fingerprint = FixedBytes<8>()
    for index in 0..<8 { fingerprint[index] = whole[index] }
    self.init(id: component.id, fingerprint: fingerprint)
  }
}
