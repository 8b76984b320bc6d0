import HoldfastCore
import HoldfastOpenSSL

/// Claims on their way into a COSE token; wiped when done with.
typealias COSEText = ByteBuffer<2560>

/// Encrypts to a device with ECDH-ES + HKDF-256 and A256GCM.
///
/// Source: RFC 9052 §5, RFC 9053 §4.1, §5.2 and §6.3.
struct COSEEncrypter {
  let device: P256Point
  let deviceKeyID: KeyID

  /// The recipient's protected header `{1: -25, 4: kid}`.
  func recipientHeader() -> [UInt8] {
    var header: [UInt8] = []
    header.appendCBOR(map: 2)
    header.appendCBOR(integer: COSE.algorithmLabel)
    header.appendCBOR(integer: COSE.ecdhHKDF256)
    header.appendCBOR(integer: COSE.keyIDLabel)
    header.appendCBOR(bytes: deviceKeyID.bytes)
    return header
  }

  /// The key of the content.
  func contentKey(
    ephemeral: inout P256PrivateKey, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> Secret<32> {
    let header = recipientHeader()
    var context: [UInt8] = []
    context.appendCOSEKeyContext(recipientProtected: header.span)
    var shared = Secret<32>()
    try ephemeral.agree(with: device, into: &shared)
    var key = Secret<32>()
    try key.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try shared.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: context.span, into: &output)
      }
    }
    return key
  }

  /// The encrypted message; `plaintext` is encrypted in place.
  func message(
    plaintext: inout COSEText, ephemeral: inout P256PrivateKey, initializationVector: FixedBytes<12>,
    using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) -> [UInt8] {
    let key = try contentKey(ephemeral: &ephemeral, using: &cryptography)
    var context: [UInt8] = []
    context.appendCOSEEncryptionContext()
    var tag = FixedBytes<16>()
    var bytes = plaintext.mutableBytes
    try cryptography.aes256GCMSeal(
      key: key, nonce: initializationVector.bytes, authenticating: context.span, message: &bytes, tag: &tag)
    return assemble(
      ciphertext: plaintext.bytes, tag: tag, ephemeral: ephemeral.publicPoint,
      initializationVector: initializationVector)
  }

  private func assemble(
    ciphertext: Span<UInt8>, tag: FixedBytes<16>, ephemeral: P256Point, initializationVector: FixedBytes<12>
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
  /// Writes a `COSE_Key` on P-256, `{1: 2, -1: 1, -2: x, -3: y}`. Source: RFC 9053 §7.1.1.
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
