extension MeasurementClaims {
  /// Decodes a JWT claims set; an unknown claim makes it `unexpected`.
  ///
  /// Source: RFC 7519 §4. `imh`, `dmh` and `mpk` are padded standard base64, `jti` is base64url.
  init(json: Span<UInt8>) throws(EncodingFault) {
    var reader = try JSONReader(json)
    var object = try reader.beginObject()
    var claims = PartialClaims()
    while let name = try reader.nextMember(&object) {
      try claims.read(name, from: &reader)
    }
    try reader.finish()
    self = try claims.complete()
  }
}

extension PartialClaims {
  fileprivate mutating func read(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) {
    if name.equals("iss") {
      issuer = try reader.boundedText()
    } else if name.equals("sub") {
      subject = try reader.boundedText()
    } else if name.equals("aud") {
      let text: BoundedText<22> = try reader.boundedText()
      audience = try DeviceID(audience: text.bytes)
    } else if name.equals("exp") {
      expires = try reader.unsigned()
    } else if name.equals("iat") {
      issuedAt = try reader.unsigned()
    } else if name.equals("jti") {
      tokenID = try reader.string().base64URLBytes()
    } else if name.equals("imh") {
      integrity = try reader.string().paddedBase64Secret()
    } else if name.equals("dmh") {
      device = try reader.string().paddedBase64Secret()
    } else if name.equals("mpk") {
      proofKey = try reader.string().paddedBase64Secret()
    } else if name.equals("gen") {
      generation = try reader.unsigned()
    } else {
      try readOptional(name, from: &reader)
    }
  }

  private mutating func readOptional(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) {
    if name.equals("max") {
      maximumUses = try reader.unsigned()
    } else if name.equals("cmd") {
      commands = try reader.commands()
    } else if name.equals("ver") {
      version = try reader.version()
    } else if name.equals("usr") {
      user = try reader.boundedText()
    } else {
      throw .unexpected
    }
  }
}

extension JSONReader {
  fileprivate mutating func boundedText<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text: BoundedText<capacity> = try string().bounded() else { throw .unexpected }
    return text
  }

  fileprivate mutating func commands() throws(EncodingFault) -> CommandList {
    var list = CommandList()
    var index = try beginArray()
    while try nextElement(&index) { try list.append(try boundedText()) }
    return list
  }

  fileprivate mutating func version() throws(EncodingFault) -> AppVersion {
    var numbers = InlineArray<3, UInt64>(repeating: 0)
    var index = try beginArray()
    while try nextElement(&index) {
      guard index <= 3 else { throw .unexpected }
      numbers[index - 1] = try unsigned()
    }
    guard index == 3 else { throw .unexpected }
    return AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
  }
}
