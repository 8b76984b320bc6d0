import HoldfastCore
import Testing

@Suite struct Base64EncodingTests {
  @Test(arguments: [
    ("", "", ""), ("f", "Zg==", "Zg"), ("fo", "Zm8=", "Zm8"), ("foo", "Zm9v", "Zm9v"), ("foob", "Zm9vYg==", "Zm9vYg"),
    ("fooba", "Zm9vYmE=", "Zm9vYmE"), ("foobar", "Zm9vYmFy", "Zm9vYmFy"),
  ])
  func `the test vectors of RFC 4648 are written`(text: String, padded: String, url: String) {
    let bytes = Array(text.utf8)
    var output: [UInt8] = []
    output.append(asPaddedBase64: bytes.span)
    #expect(String(decoding: output, as: UTF8.self) == padded)
    output = []
    output.append(asBase64URL: bytes.span)
    #expect(String(decoding: output, as: UTF8.self) == url)
  }

  @Test func `every group of six bits has the alphabet's character, and comes back`() throws {
    var bytes: [UInt8] = []
    for group in 0..<16 {
      let first = UInt32(group * 4)
      let bits = first << 18 | (first + 1) << 12 | (first + 2) << 6 | (first + 3)
      bytes += [UInt8(bits >> 16), UInt8(bits >> 8 & 0xff), UInt8(bits & 0xff)]
    }
    let common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    var padded: [UInt8] = []
    padded.append(asPaddedBase64: bytes.span)
    #expect(String(decoding: padded, as: UTF8.self) == common + "+/")
    var url: [UInt8] = []
    url.append(asBase64URL: bytes.span)
    #expect(String(decoding: url, as: UTF8.self) == common + "-_")
    var back = ByteBuffer<48>()
    try back.append(base64URL: url.span)
    let isSame = back.bytes.elementsEqual(bytes.span)
    #expect(isSame)
  }
}
