import HoldfastCore
import HoldfastOpenSSL

/// The bytes of base64url text without padding, at most 6144; they may be secret.
func decodeBase64URL(_ text: Span<UInt8>) throws(EncodingFault) -> SecretBytes {
  var buffer = ByteBuffer<6144>()
  try buffer.append(base64URL: text)
  return SecretBytes(copying: buffer.bytes)
}

/// The public bytes of base64url text without padding.
func decodePublicBase64URL(_ text: String) throws(EncodingFault) -> [UInt8] {
  let utf8 = Array(text.utf8)
  let bytes = try decodeBase64URL(utf8.span)
  return [UInt8](copying: bytes.bytes)
}

/// Public bytes as base64url text without padding.
func base64URL(_ bytes: Span<UInt8>) -> String {
  var text: [UInt8] = []
  text.append(asBase64URL: bytes)
  return String(decoding: text, as: UTF8.self)
}
