import HoldfastCore
import HoldfastOpenSSL

/// The claims of a COSE token while it is written. The buffer is wiped when it is destroyed.
package typealias COSEText = ByteBuffer<2560>

/// An encrypter to a device, with ECDH-ES + HKDF-256 and A256GCM.
///
/// Source: RFC 9052 §5, RFC 9053 §4.1, §5.2 and §6.3.
package struct COSEEncrypter {
  package let device: P256Point
  package let deviceKeyID: KeyID

  package init(device: P256Point, deviceKeyID: KeyID) {
    (self.device, self.deviceKeyID) = (device, deviceKeyID)
  }

  /// Returns the recipient's protected header `{1: -25, 4: kid}`.
  package func recipientHeader() -> [UInt8] {
    var header: [UInt8] = []
    header.appendCBOR(map: 2)
    header.appendCBOR(integer: COSE.algorithmLabel)
    header.appendCBOR(integer: COSE.ecdhHKDF256)
    header.appendCBOR(integer: COSE.keyIDLabel)
    header.appendCBOR(bytes: deviceKeyID.bytes)
    return header
  }

  /// Derives the content key.
  package func contentKey(
    ephemeral: inout P256PrivateKey, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> Secret<32> {
    var shared = Secret<32>()
    try ephemeral.agree(with: device, into: &shared)
    return try contentKey(from: shared, using: &cryptography)
  }

  /// Derives the content key from the x coordinate on which both ends agreed.
  package func contentKey(
    from shared: borrowing Secret<32>, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> Secret<32> {
    let header = recipientHeader()
    var context: [UInt8] = []
    context.appendCOSEKeyContext(recipientProtected: header.span)
    var key = Secret<32>()
    try key.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try shared.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: context.span, into: &output)
      }
    }
    return key
  }

  /// Returns the encrypted message. `plaintext` is encrypted in place.
  package func message<let capacity: Int>(
    plaintext: inout ByteBuffer<capacity>, ephemeral: inout P256PrivateKey, initializationVector: FixedBytes<12>,
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> [UInt8] {
    let key = try contentKey(ephemeral: &ephemeral, using: &cryptography)
    return try message(
      plaintext: &plaintext, contentKey: key, ephemeral: ephemeral.publicPoint,
      initializationVector: initializationVector, using: &cryptography)
  }

  /// Returns the message encrypted with a content key that was derived already. `ephemeral` is the point that the message names.
  package func message<let capacity: Int>(
    plaintext: inout ByteBuffer<capacity>, contentKey: borrowing Secret<32>, ephemeral: P256Point,
    initializationVector: FixedBytes<12>, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> [UInt8] {
    var context: [UInt8] = []
    context.appendCOSEEncryptionContext()
    var tag = AuthenticationTag()
    var bytes = plaintext.mutableBytes
    try cryptography.aes256GCMSeal(
      key: contentKey, nonce: initializationVector.bytes, authenticating: context.span, message: &bytes, tag: &tag)
    return assemble(
      ciphertext: plaintext.bytes, tag: tag, ephemeral: ephemeral, initializationVector: initializationVector)
  }

  private func assemble(
    ciphertext: Span<UInt8>, tag: AuthenticationTag, ephemeral: P256Point, initializationVector: FixedBytes<12>
  ) -> [UInt8] {
    let header = recipientHeader()
    var token: [UInt8] = []
    token.appendCBOR(tag: COSE.encryptTag)
    token.appendCBOR(array: 4)
    token.appendCBOR(byteStringHead: 3)
    token.appendCOSEContentHeader()
    token.appendCBOR(map: 1)
    token.appendCBOR(integer: COSE.ivLabel)
    token.appendCBOR(bytes: initializationVector.bytes)
    token.appendCBOR(byteStringHead: ciphertext.count + 16)
    token.append(ciphertext)
    token.append(tag.bytes)
    token.appendCBOR(array: 1)
    token.appendCBOR(array: 3)
    token.appendCBOR(bytes: header.span)
    token.appendCBOR(map: 1)
    token.appendCBOR(integer: COSE.ephemeralKeyLabel)
    token.appendCOSEKey(ephemeral)
    token.appendCBOR(byteStringHead: 0)
    return token
  }
}

extension [UInt8] {
  /// Appends a `COSE_Key` on P-256, `{1: 2, -1: 1, -2: x, -3: y}`. Source: RFC 9053 §7.1.1.
  fileprivate mutating func appendCOSEKey(_ point: P256Point) {
    let bytes = point.bytes
    appendCBOR(map: 4)
    appendCBOR(integer: 1)
    appendCBOR(integer: 2)
    appendCBOR(integer: -1)
    appendCBOR(integer: 1)
    appendCBOR(integer: -2)
    appendCBOR(bytes: bytes.extracting(1..<33))
    appendCBOR(integer: -3)
    appendCBOR(bytes: bytes.extracting(33..<65))
  }
}

/// The parts of an issuer's `COSE_Sign1` or `COSE_Mac0`.
///
/// Source: RFC 9052 §4.2, §4.4, §6.2 and §6.3.
package struct COSEClaimsWriter {
  package let keyID: KeyID
  package let isMAC: Bool
  package let type: StaticString

  package init(keyID: KeyID, isMAC: Bool, type: StaticString = COSE.measurementTokenType) {
    (self.keyID, self.isMAC, self.type) = (keyID, isMAC, type)
  }

  /// Returns the protected header `{1: -7 or 5, 4: kid, 16: type}`.
  package func protectedHeader() -> [UInt8] {
    var header: [UInt8] = []
    header.appendCBOR(map: 3)
    header.appendCBOR(integer: COSE.algorithmLabel)
    header.appendCBOR(integer: isMAC ? COSE.hmac256 : COSE.es256)
    header.appendCBOR(integer: COSE.keyIDLabel)
    header.appendCBOR(bytes: keyID.bytes)
    header.appendCBOR(integer: COSE.typeLabel)
    header.appendCBOR(text: type)
    return header
  }

  /// Appends the input of the signature or MAC to `sink`, a hash or a MAC.
  package func append<Sink: ByteSink & ~Copyable>(
    contextOf payload: Span<UInt8>, to sink: inout Sink
  ) throws(Sink.Failure) {
    let header = protectedHeader()
    try sink.appendCOSEClaimsContext(
      isMAC ? COSE.macContext : COSE.signatureContext, protected: header.span, payload: payload)
  }

  /// Returns the complete message. `seal` is the signature of 64 bytes or the MAC tag of 32.
  package func message<let capacity: Int>(
    payload: Span<UInt8>, seal: Span<UInt8>
  ) throws(EncodingFault) -> ByteBuffer<capacity> {
    let header = protectedHeader()
    var text = ByteBuffer<capacity>()
    try text.appendCBOR(tag: isMAC ? COSE.mac0Tag : COSE.sign1Tag)
    try text.appendCBOR(array: 4)
    try text.appendCBOR(bytes: header.span)
    try text.appendCBOR(map: 0)
    try text.appendCBOR(bytes: payload)
    try text.appendCBOR(bytes: seal)
    return text
  }
}

/// The keys with which an issuer authenticates measurement tokens, and nothing else.
package struct IssuerSecrets<Key: SigningKey & ~Copyable>: ~Copyable {
  /// The key that signs tokens for every device.
  package var signing: Key
  /// The secret from which the MAC key of each device is derived; nil if the issuer shares no such keys.
  package let macSecret: Secret<32>?

  /// Creates the secrets of an issuer.
  package init(signing: consuming Key, macSecret: consuming Secret<32>? = nil) {
    self.signing = signing
    self.macSecret = macSecret
  }
}

extension IssuerSecrets where Key: ~Copyable {
  /// Derives the key that the issuer shares with a device; nil if it shares none.
  borrowing func macKey(
    for deviceID: DeviceID, _ point: P256Point, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> Secret<32>? {
    switch macSecret {
    case .some(let secret): try deviceMACKey(from: secret, for: deviceID, point, using: &cryptography)
    case .none: nil
    }
  }
}

/// Derives the key that an issuer shares with a device: `HKDF-SHA-256(secret, info: "holdfast/1 mac key" ‖ 0x00 ‖
/// device id ‖ device's point)`, 32 bytes.
///
/// The point is included so that anyone who presents a device's id with another key gets another MAC key than the
/// device's. Source: RFC 5869 §2.
package func deviceMACKey(
  from secret: borrowing Secret<32>, for deviceID: DeviceID, _ point: P256Point,
  using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Secret<32> {
  var info: [UInt8] = []
  info.append(domain: "holdfast/1 mac key")
  info.append(deviceID.bytes)
  info.append(point.bytes)
  var key = Secret<32>()
  try key.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
    try secret.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: info.span, into: &output)
    }
  }
  return key
}
