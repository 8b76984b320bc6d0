import HoldfastAuthenticator
import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// All values of a byte, so that each character occurs.
private let everyByte = (0..<255).map { UInt8($0) }

/// Base64 in both alphabets, written and read.
func base64() throws -> Bool {
  let secret: [UInt8] = marked(everyByte)
  var isRight = true
  for isURL in [false, true] {
    var text = ByteBuffer<340>()
    var bytes = ByteBuffer<255>()
    if isURL {
      try text.append(asBase64URL: secret.span)
      try bytes.append(base64URL: text.bytes)
    } else {
      try text.append(asPaddedBase64: secret.span)
      try bytes.append(paddedBase64: text.bytes)
    }
    isRight = isRight && constantTimeEqual(bytes.bytes, everyByte.span)
  }
  // One character that is in no alphabet.
  let wrong: [UInt8] = marked(Array("AAA!".utf8))
  var refused = ByteBuffer<3>()
  do { try refused.append(base64URL: wrong.span) } catch { return isRight }
  return false
}

/// Base32 as people write it down, in either case.
func base32() throws -> Bool {
  let secret: [UInt8] = marked(everyByte)
  let text = Base32.encode(secret.span)
  let lower: [UInt8] = marked(Array("jbsw y3dp-ehpk 3pxp".utf8))
  let wrong: [UInt8] = marked(Array("JBSWY3D1".utf8))
  guard try decodes(text, to: everyByte), try decodes(lower, to: hex("48656c6c6f21deadbeef")) else { return false }
  do { _ = try Base32.decode(wrong.span) } catch { return true }
  return false
}

private func decodes(_ text: [UInt8], to expected: [UInt8]) throws -> Bool {
  let decoded = try Base32.decode(text.span)
  return decoded.withBytes { constantTimeEqual($0, expected.span) }
}

/// Hexadecimal digits in either case.
func base16() throws -> Bool {
  let text: [UInt8] = marked(Array("0123456789abcdefABCDEF".utf8))
  let expected = hex("0123456789abcdefabcdef")
  let decoded = try Base16.decode(text.span)
  return decoded.withBytes { constantTimeEqual($0, expected.span) }
}
