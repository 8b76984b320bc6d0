extension MeasurementClaims {
  /// Decodes a JWT claims set; an unknown claim makes it `unexpected`.
  ///
  /// Source: RFC 7519 §4. `imh`, `dmh` and `mpk` are padded standard base64, `jti` is base64url.
  mutating func decode(json: Span<UInt8>) throws(EncodingFault) {
    removeOptional()
    var reader = try JSONReader(json)
    var object = try reader.beginObject()
    var seen = ClaimNames()
    while let name = try reader.nextMember(&object) {
      seen.formUnion(try read(name, from: &reader))
    }
    try reader.finish()
    try check(seen)
  }

  private mutating func read(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) -> ClaimNames {
    if name.equals("iss") {
      issuer = try reader.boundedText()
      return .issuer
    }
    if name.equals("sub") {
      subject = try reader.boundedText()
      return .subject
    }
    if name.equals("aud") {
      let text: BoundedText<22> = try reader.boundedText()
      audience = try DeviceID(audience: text.bytes)
      return .audience
    }
    if name.equals("exp") {
      expires = try reader.unsigned()
      return .expires
    }
    if name.equals("iat") {
      issuedAt = try reader.unsigned()
      return .issuedAt
    }
    if name.equals("jti") {
      tokenID = try reader.string().base64URLBytes()
      return .tokenID
    }
    if name.equals("imh") {
      try reader.string().read(paddedBase64: &integrity)
      return .integrity
    }
    if name.equals("dmh") {
      try reader.string().read(paddedBase64: &device)
      return .device
    }
    if name.equals("mpk") {
      try reader.string().read(paddedBase64: &proofKey)
      return .proofKey
    }
    if name.equals("gen") {
      generation = try reader.unsigned()
      return .generation
    }
    try readOptional(name, from: &reader)
    return []
  }

  private mutating func readOptional(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) {
    if name.equals("max") {
      maximumUses = try reader.unsigned()
    } else if name.equals("cmd") {
      commands = try CommandList(&reader)
    } else if name.equals("ver") {
      version = try reader.version()
    } else if name.equals("usr") {
      user = try reader.boundedText()
    } else {
      throw .unexpected
    }
  }
}

extension CommandList {
  fileprivate init(_ reader: inout JSONReader) throws(EncodingFault) {
    self.init()
    var index = try reader.beginArray()
    while try reader.nextElement(&index) { try append(try reader.boundedText()) }
  }
}

extension JSONReader {
  fileprivate mutating func boundedText<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text: BoundedText<capacity> = try string().bounded() else { throw .unexpected }
    return text
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
