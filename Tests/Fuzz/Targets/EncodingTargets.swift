import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats

/// The readers of CBOR, JSON and the encodings of bytes as text.
let encodingTargets = [
  FuzzTarget("cbor", ["HoldfastCore/Encoding/CBORReader.swift", "HoldfastCore/Encoding/CBORWriter.swift"]) { bytes in
    var skipper = CBORReader(bytes.span)
    let isValue: Bool
    do {
      try skipper.skipValue()
      try skipper.finish()
      isValue = true
    } catch { isValue = false }
    note("\(isValue)")
    var written: [UInt8] = []
    do {
      var reader = CBORReader(bytes.span)
      try copyItem(&reader, of: bytes, into: &written, depth: 0)
      try reader.finish()
    } catch {
      try require(!isValue, "a value that is skipped cannot be read")
      throw error
    }
    try require(written == bytes, "CBOR that is read and written again differs")
  },
  FuzzTarget(
    "json",
    [
      "HoldfastCore/Encoding/JSONReader.swift", "HoldfastCore/Encoding/JSONString.swift",
      "HoldfastFormats/JSONParser.swift",
      "HoldfastFormats/JSONValue.swift", "HoldfastFormats/JSONMember.swift", "HoldfastFormats/JSONMistake+Text.swift",
    ]
  ) { bytes in
    let isCore: Bool
    do {
      var reader = try JSONReader(bytes.span)
      try reader.skipValue()
      try reader.finish()
      isCore = true
    } catch { isCore = false }
    note("\(isCore)")
    let lenient = attempt { try JSONValue(parsing: bytes, byteLimit: bytes.count, otherNumbers: .asText) }
    note(lenient?.compact() ?? [])
    let value: JSONValue
    do { value = try JSONValue(parsing: bytes, byteLimit: bytes.count) } catch {
      try require(!isCore, "the core's reader takes JSON that the parser refuses: \(error)")
      let mistake = JSONMistake(in: bytes, byteLimit: bytes.count)
      try require(mistake != nil, "a JSON text is refused without a mistake")
      let explained = mistake?.text ?? ""
      note(explained)
      _ = mistake?.text(in: "file")
      throw error
    }
    // The levels of objects and arrays; the core counts the value in the innermost one, too.
    try require(isCore || value.levelCount >= 8, "the parser takes JSON that the core's reader refuses")
    try require(JSONMistake(in: bytes, byteLimit: bytes.count) == nil, "a mistake in a JSON text that is read")
    note(value.compact())
    for text in [value.compact(), value.pretty()] {
      let again = try mustSucceed("JSON that was written is refused") {
        try JSONValue(parsing: text, byteLimit: text.count)
      }
      try require(again == value, "JSON that is written and read again differs")
    }
  },
  FuzzTarget("base64", ["HoldfastCore/Encoding/Base64.swift", "HoldfastFormats/TextEncodings.swift"]) { bytes in
    var url = ByteBuffer<8192>()
    if attempt({ try url.append(base64URL: bytes.span) }) != nil {
      note([UInt8](url.bytes))
      var text: [UInt8] = []
      text.append(asBase64URL: url.bytes)
      try require(text == bytes, "base64url that is read and written again differs")
      let decoded = try mustSucceed("base64url is read in one way only") { try decodePublicBase64URL(bytes.span) }
      try require(decoded == [UInt8](url.bytes), "base64url is read in two ways")
    } else {
      try require((try? decodePublicBase64URL(bytes.span)) == nil, "base64url is refused in one way only")
    }
    var padded = ByteBuffer<8192>()
    let string = String(decoding: bytes, as: UTF8.self)
    if attempt({ try padded.append(paddedBase64: bytes.span) }) != nil {
      note([UInt8](padded.bytes))
      var text: [UInt8] = []
      text.append(asPaddedBase64: padded.bytes)
      try require(text == bytes, "base64 that is read and written again differs")
      let decoded = try mustSucceed("base64 is read in one way only") { try decodePublicPaddedBase64(string) }
      try require(decoded == [UInt8](padded.bytes), "base64 is read in two ways")
    } else if string.utf8.elementsEqual(bytes) {
      try require((try? decodePublicPaddedBase64(string)) == nil, "base64 is refused in one way only")
    }
  },
  FuzzTarget(
    "base32", ["HoldfastAuthenticator/Formats/Base32.swift", "HoldfastAuthenticator/Formats/Credential.swift"],
    maximumByteCount: 256
  ) { bytes in
    let account = ImportParameters.Account(user: "ann", method: .hotp(.sha1, .six))
    for format in [CredentialFormat.base32, .hex, .raw] {
      let read = attempt {
        try Credential.read(bytes.span, format: format, parameters: ImportParameters(account: account))
      }
      try require(read == nil || read?.count == 1, "a bare secret is not one account")
    }
    if let secret = attempt({ try Base16.decode(bytes.span) }) {
      var text: [UInt8] = []
      text.appendHexadecimal(secret.bytes)
      note(text)
      try require(
        text == bytes.map { (0x41...0x46).contains($0) ? $0 | 0x20 : $0 }, "hexadecimal digits that are read differ")
    }
    let secret = try Base32.decode(bytes.span)
    note(Base32.encode(secret.bytes))
    let plain = bytes.filter { ![0x20, 0x2d, 0x3d].contains($0) }.map { (0x61...0x7a).contains($0) ? $0 - 0x20 : $0 }
    try require(Base32.encode(secret.bytes) == plain, "base32 that is read and written again differs")
  },
]

/// Reads one item of any type, and writes it again.
private func copyItem(_ reader: inout CBORReader, of bytes: [UInt8], into written: inout [UInt8], depth: Int) throws {
  guard depth < 64 else { throw EncodingFault.malformed }
  if reader.null() { return written.appendCBORNull() }
  switch try reader.nextMajorType() {
  case .unsigned, .negative: written.appendCBOR(integer: try reader.integer())
  case .bytes: written.appendCBOR(bytes: try reader.byteString())
  case .text: written.appendCBOR(text: try reader.textString())
  case .array:
    let count = try reader.arrayHead()
    written.appendCBOR(array: count)
    for _ in 0..<count { try copyItem(&reader, of: bytes, into: &written, depth: depth + 1) }
  case .map:
    let count = try reader.mapHead()
    written.appendCBOR(map: count)
    for _ in 0..<2 * count { try copyItem(&reader, of: bytes, into: &written, depth: depth + 1) }
  case .tag:
    written.appendCBOR(tag: try reader.tag())
    try copyItem(&reader, of: bytes, into: &written, depth: depth + 1)
  case .simple:
    // Nothing writes true and false.
    try reader.skipValue()
    written.append(bytes[reader.position - 1])
  }
}
