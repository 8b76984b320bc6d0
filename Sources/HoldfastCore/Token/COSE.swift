/// The constants of COSE that a measurement token is made of.
///
/// Source: RFC 9052 §3.1, §4.4 and §6.3, RFC 9053 §2.1, §3.1, §4.1 and §6.3, RFC 9596 §2 (`typ`).
public enum COSE {
  public static let encryptTag: UInt64 = 96
  public static let sign1Tag: UInt64 = 18
  public static let mac0Tag: UInt64 = 17
  public static let algorithmLabel: Int64 = 1
  public static let keyIDLabel: Int64 = 4
  public static let ivLabel: Int64 = 5
  public static let typeLabel: Int64 = 16
  public static let ephemeralKeyLabel: Int64 = -1
  /// ES256.
  public static let es256: Int64 = -7
  /// HMAC with SHA-256 and the whole tag of 32 bytes.
  public static let hmac256: Int64 = 5
  /// ECDH-ES + HKDF-256.
  public static let ecdhHKDF256: Int64 = -25
  /// AES-256 in GCM with a 16-byte tag.
  public static let aes256GCM: Int64 = 3
  /// The `typ` of a measurement token.
  public static let measurementTokenType: StaticString = "holdfast-mt"
  /// What a signature of a `COSE_Sign1` is over begins with.
  public static let signatureContext: StaticString = "Signature1"
  /// What the tag of a `COSE_Mac0` is over begins with.
  public static let macContext: StaticString = "MAC0"
}

extension ByteSink where Self: ~Copyable {
  /// Writes what AES-GCM authenticates beside the ciphertext, `Enc_structure` with the protected header `{1: 3}`.
  ///
  /// Source: RFC 9052 §5.3.
  public mutating func appendCOSEEncryptionContext() throws(Failure) {
    try appendCBOR(array: 3)
    try appendCBOR(text: "Encrypt")
    try appendCBOR(byteStringHead: 3)
    try appendCOSEContentHeader()
    try appendCBOR(byteStringHead: 0)
  }

  /// Writes the protected header of the content, `{1: 3}`: three bytes.
  public mutating func appendCOSEContentHeader() throws(Failure) {
    try appendCBOR(map: 1)
    try appendCBOR(integer: COSE.algorithmLabel)
    try appendCBOR(integer: COSE.aes256GCM)
  }

  /// Writes `COSE_KDF_Context` for a 256-bit content key with null parties.
  ///
  /// Source: RFC 9053 §5.2. `recipientProtected` is the recipient's protected header as it stands in the token.
  public mutating func appendCOSEKeyContext(recipientProtected: Span<UInt8>) throws(Failure) {
    try appendCBOR(array: 4)
    try appendCBOR(integer: COSE.aes256GCM)
    for _ in 0..<2 {
      try appendCBOR(array: 3)
      for _ in 0..<3 { try appendCBORNull() }
    }
    try appendCBOR(array: 2)
    try appendCBOR(unsigned: 256)
    try appendCBOR(bytes: recipientProtected)
  }

  /// Writes what an issuer signs or authenticates: `Sig_structure` of a `COSE_Sign1` or `MAC_structure` of a `COSE_Mac0`,
  /// without external data.
  ///
  /// Source: RFC 9052 §4.4 and §6.3. `context` is ``COSE/signatureContext`` or ``COSE/macContext``.
  public mutating func appendCOSEClaimsContext(
    _ context: StaticString, protected: Span<UInt8>, payload: Span<UInt8>
  ) throws(Failure) {
    try appendCBOR(array: 4)
    try appendCBOR(text: context)
    try appendCBOR(bytes: protected)
    try appendCBOR(byteStringHead: 0)
    try appendCBOR(bytes: payload)
  }
}
