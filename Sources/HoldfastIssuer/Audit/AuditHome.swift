import HoldfastCore
import HoldfastOpenSSL

/// The home of devices' audit logs: it opens pages, and signs receipts. It has no store.
///
/// Source: docs/couriers.md, The audit log goes home.
package struct AuditHome: Sendable {
  /// The key that signs receipts, by which devices name the home.
  package let keyID: KeyID

  /// Creates a home.
  ///
  /// - Parameter signing: the public half of the key that signs receipts.
  package init(of signing: P256Point) throws(CryptographyFailure) {
    var cryptography = OpenSSLCryptography()
    keyID = try HoldfastCore.keyID(of: signing, using: &cryptography)
  }

  /// Computes the secret that the home shares with a device, which serves for all of its pages.
  ///
  /// - Parameters:
  ///   - device: the id of the device.
  ///   - point: the public key of the device, as its owner registered it.
  ///   - agreement: the home's private key for agreement.
  package func secret<Key: AgreementKey & ~Copyable>(
    with device: DeviceID, _ point: P256Point, agreement: inout Key
  ) throws(CryptographyFailure) -> AuditPageSecret {
    var shared = Secret<32>()
    try agreement.agree(with: point, into: &shared)
    return AuditPageSecret(shared, device: device, home: keyID)
  }

  /// Writes a receipt, at most 256 bytes.
  ///
  /// - Parameters:
  ///   - chain: the last entry that the home has, together with all before it, and the hash of that entry.
  ///   - device: the device whose log it is.
  ///   - key: the key that signs receipts.
  package func receipt<Key: SigningKey & ~Copyable>(
    for chain: AuditChain, of device: DeviceID, key: inout Key
  ) throws(CryptographyFailure) -> [UInt8] {
    let payload = AuditReceipt.claims(device, chain)
    let writer = COSEClaimsWriter(keyID: keyID, isMAC: false, type: COSE.receiptType)
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    writer.append(contextOf: payload.span, to: &hash)
    let signature = try key.sign(try hash.finish())
    let text: ByteBuffer<256>
    do throws(EncodingFault) { text = try writer.message(payload: payload.span, seal: signature.bytes) } catch {
      throw CryptographyFailure()
    }
    var receipt: [UInt8] = []
    receipt.append(text.bytes)
    return receipt
  }
}
