import HoldfastCore
import HoldfastFormats

/// The parts of a token in which a bit is flipped.
enum TokenPart {
  /// Returns a name and the index of a byte for each part. The bytes are those of an encrypted token, and no secret.
  static func places(in token: [UInt8], _ encoding: TokenEncoding) -> [(String, Int)] {
    encoding == .jose ? josePlaces(token) : cosePlaces(token)
  }

  private static func josePlaces(_ token: [UInt8]) -> [(String, Int)] {
    let names = ["the header", "the key", "the initialization vector", "the ciphertext", "the tag"]
    let dots = token.indices.filter { token[$0] == 0x2e }
    let starts = [0] + dots.map { $0 + 1 }
    let ends = dots + [token.count]
    return zip(names, zip(starts, ends)).compactMap { name, range in
      // The first character has six bits that count.
      range.0 < range.1 ? (name, range.0) : nil
    }
  }

  private static func cosePlaces(_ token: [UInt8]) -> [(String, Int)] {
    var reader = CBORReader(token.span)
    var places = [("the tag of the message", 1)]
    do throws(EncodingFault) {
      try reader.tag(COSE.encryptTag)
      try reader.array(of: 4)
      _ = try reader.byteString()
      places.append(("the header of the content", reader.position - 1))
      guard try reader.mapHead() == 1 else { return places }
      _ = try reader.integer()
      _ = try reader.byteString()
      places.append(("the initialization vector", reader.position - 1))
      let ciphertext = try reader.byteString()
      places.append(("the ciphertext", reader.position - ciphertext.count))
      places.append(("the tag of the ciphertext", reader.position - 1))
      try reader.array(of: 1)
      try reader.array(of: 3)
      _ = try reader.byteString()
      places.append(("the device's key id", reader.position - 1))
      guard try reader.mapHead() == 1 else { return places }
      _ = try reader.integer()
      guard try reader.mapHead() == 4 else { return places }
      for name in ["the type of the key", "the curve", "the first coordinate", "the second coordinate"] {
        _ = try reader.integer()
        try reader.skipValue()
        places.append((name, reader.position - 1))
      }
      places.append(("the end", token.count - 1))
    } catch { return places }
    return places
  }
}
