/// A receipt of the home of a device's audit log, which was decoded, and whose signature was not checked: the home has the entries up to
/// a number, durably. The spans point into the bytes.
///
/// It is a `COSE_Sign1` with the `typ` `holdfast-receipt` over `{1: device id, 2: count, 3: head}`. Source: docs/couriers.md, Receipts.
package struct AuditReceipt: ~Escapable {
  private let issued: COSEIssuedClaims
  /// The device whose log it is.
  package let device: DeviceID
  /// The number of the last entry that the home has, and the hash of that entry.
  package let chain: AuditChain
  /// The key that the receipt names as the home's.
  package var home: KeyID { issued.issuerKeyID }

  /// The length of the longest receipt, in bytes.
  package static var maximumByteCount: Int { 256 }

  /// Decodes a receipt.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure, `tooLong` above 256 bytes.
  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>) throws(EncodingFault) {
    guard bytes.count <= Self.maximumByteCount else { throw .tooLong }
    issued = try COSEIssuedClaims(bytes, type: COSE.receiptType)
    guard issued.isSigned else { throw .unexpected }
    var reader = CBORReader(issued.payload)
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 3 else { throw .unexpected }
    try reader.label(1, &order)
    device = try reader.fixedBytes()
    try reader.label(2, &order)
    let count = try reader.unsigned()
    try reader.label(3, &order)
    chain = AuditChain(count: count, head: try reader.fixedBytes())
    try reader.finish()
    guard (1...maximumInteger).contains(count) else { throw .unexpected }
  }

  #if !hasFeature(Embedded)
  /// Returns the claims of a receipt.
  package static func claims(_ device: DeviceID, _ chain: AuditChain) -> [UInt8] {
    var claims: [UInt8] = []
    claims.appendCBOR(map: 3)
    claims.appendCBOR(unsigned: 1)
    claims.appendCBOR(bytes: device.bytes)
    claims.appendCBOR(unsigned: 2)
    claims.appendCBOR(unsigned: chain.count)
    claims.appendCBOR(unsigned: 3)
    claims.appendCBOR(bytes: chain.head.bytes)
    return claims
  }
  #endif

  /// Checks the signature.
  ///
  /// - Parameter key: the home's key, whose id the receipt names.
  package func verify<Crypto: Cryptography & ~Copyable>(
    by key: P256Point, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    try issued.verify(by: key, using: &cryptography)
  }
}
