import HoldfastCore

/// A key that an issuer shares with one device, as a JWK of exactly the members `kty`, `k`, `alg` and `use`.
///
/// Source: RFC 7517 §4, RFC 7518 §3.2 and §6.4. Text and key stay in buffers that are wiped.
public enum MACKeyJWK {
  /// The longest JWK that is read, in bytes.
  public static let maximumByteCount = 512

  /// Writes `key`, 32 bytes, and a line end.
  public static func encode(
    _ key: borrowing Secret<32>, into text: inout ByteBuffer<512>
  ) throws(EncodingFault) {
    try text.append("{\"kty\":\"oct\",\"k\":\"")
    try key.withBytes { (bytes: Span<UInt8>) throws(EncodingFault) in try text.append(asBase64URL: bytes) }
    try text.append("\",\"alg\":\"HS256\",\"use\":\"sig\"}\n")
  }

  /// Reads a key of 32 bytes. Throws `malformed` and `unexpected`.
  public static func decode(_ text: Span<UInt8>) throws(KeyFault) -> Secret<32> {
    var members = Members()
    do throws(EncodingFault) {
      var reader = try JSONReader(text)
      var object = try reader.beginObject()
      while let name = try reader.nextMember(&object) { try members.read(name, from: &reader) }
      try reader.finish()
    } catch { throw error == .unexpected ? .unexpected : .malformed }
    guard members.isOctets, members.isHS256, members.isForSignatures, let key = Secret<32>(copying: members.key.bytes)
    else { throw .unexpected }
    return key
  }

  /// Whether `text` is a JWK of a symmetric key, of whatever kind: then it is a secret.
  public static func isSymmetricKey(_ text: Span<UInt8>) -> Bool {
    do throws(EncodingFault) {
      var reader = try JSONReader(text)
      var object = try reader.beginObject()
      while let name = try reader.nextMember(&object) {
        if name.equals("kty") { return try reader.string().equals("oct") }
        try reader.skipValue()
      }
      return false
    } catch { return false }
  }

  private struct Members: ~Copyable {
    var isOctets = false
    var isHS256 = false
    var isForSignatures = false
    var key = ByteBuffer<32>()

    mutating func read(_ name: borrowing JSONString, from reader: inout JSONReader) throws(EncodingFault) {
      if name.equals("kty") {
        isOctets = try reader.string().equals("oct")
      } else if name.equals("alg") {
        isHS256 = try reader.string().equals("HS256")
      } else if name.equals("use") {
        isForSignatures = try reader.string().equals("sig")
      } else if name.equals("k") {
        var text = ByteBuffer<48>()
        try reader.string().unescape(into: &text)
        try key.append(base64URL: text.bytes)
      } else {
        throw .unexpected
      }
    }
  }
}
