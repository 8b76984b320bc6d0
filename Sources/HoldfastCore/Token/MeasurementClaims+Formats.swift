extension MeasurementClaims {
  /// Decodes a CWT claims set. Throws `unexpected` for an unknown claim.
  ///
  /// Source: RFC 8392 §3.
  package mutating func decode(cbor: Span<UInt8>) throws(EncodingFault) {
    removeAll()
    var reader = CBORReader(cbor)
    var order = CBORLabelOrder()
    for _ in 0..<(try reader.mapHead()) {
      guard let claim = Claim(label: try reader.label(&order)) else { throw .unexpected }
      try read(claim, from: &reader)
    }
    try reader.finish()
    try check()
  }

  private mutating func read(_ claim: Claim, from reader: inout CBORReader) throws(EncodingFault) {
    var isPresent = true
    switch claim.row.kind {
    case .text64(let place): texts64[place] = try reader.boundedText()
    case .text32(let place): texts32[place] = try reader.boundedText()
    case .number(let place): numbers[place] = try reader.unsigned()
    case .deviceID: audience = try DeviceID(audience: reader.textString())
    case .bytes16: tokenID = try reader.fixedBytes()
    case .secret32(0): try integrity.set(try reader.byteString())
    case .secret32: try device.set(try reader.byteString())
    case .secret16: try proofKey.set(try reader.byteString())
    case .commands: commands = try CommandList(&reader)
    case .version:
      try reader.array(of: 3)
      version = AppVersion(
        major: try reader.unsigned(), minor: try reader.unsigned(), patch: try reader.unsigned())
      isPresent = version != .zero
    }
    setPresence(of: claim, to: isPresent)
  }

  /// Decodes a JWT claims set. Throws `unexpected` for an unknown claim.
  ///
  /// Source: RFC 7519 §4. `imh`, `dmh` and `mpk` are padded standard base64, `jti` is base64url.
  package mutating func decode(json: Span<UInt8>) throws(EncodingFault) {
    removeAll()
    var reader = try JSONReader(json)
    var object = try reader.beginObject()
    while let name = try reader.nextMember(&object) {
      guard let claim = Claim(name: name) else { throw .unexpected }
      try read(claim, from: &reader)
    }
    try reader.finish()
    try check()
  }

  private mutating func read(_ claim: Claim, from reader: inout JSONReader) throws(EncodingFault) {
    var isPresent = true
    switch claim.row.kind {
    case .text64(let place): texts64[place] = try reader.boundedText()
    case .text32(let place): texts32[place] = try reader.boundedText()
    case .number(let place): numbers[place] = try reader.unsigned()
    case .deviceID:
      let text: BoundedText<22> = try reader.boundedText()
      audience = try DeviceID(audience: text.bytes)
    case .bytes16: tokenID = try reader.string().base64URLBytes()
    case .secret32(0): try reader.string().read(paddedBase64: &integrity)
    case .secret32: try reader.string().read(paddedBase64: &device)
    case .secret16: try reader.string().read(paddedBase64: &proofKey)
    case .commands: commands = try CommandList(&reader)
    case .version:
      version = try reader.version()
      isPresent = version != .zero
    }
    setPresence(of: claim, to: isPresent)
  }

  /// Writes the claims as a CWT claims set in deterministic CBOR.
  ///
  /// Source: RFC 8392 §3.
  package borrowing func appendCBOR<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    var count = 0
    for claim in Claim.all where has(claim) { count += 1 }
    try sink.appendCBOR(map: count)
    for claim in Claim.all where has(claim) {
      try sink.appendCBOR(integer: claim.label)
      try appendCBOR(valueOf: claim, to: &sink)
    }
  }

  private borrowing func appendCBOR<Sink: ByteSink & ~Copyable>(
    valueOf claim: Claim, to sink: inout Sink
  ) throws(Sink.Failure) {
    switch claim.row.kind {
    case .text64(let place): try sink.appendCBOR(text: texts64[place].bytes)
    case .text32(let place): try sink.appendCBOR(text: texts32[place].bytes)
    case .number(let place): try sink.appendCBOR(unsigned: numbers[place])
    case .deviceID:
      var text = ByteBuffer<22>()
      // This cannot fail: 16 bytes are 22 characters.
      try? text.append(asBase64URL: audience.bytes)
      try sink.appendCBOR(text: text.bytes)
    case .bytes16: try sink.appendCBOR(bytes: tokenID.bytes)
    case .secret32, .secret16:
      try withSecret(claim) { (bytes) throws(Sink.Failure) in try sink.appendCBOR(bytes: bytes) }
    case .commands:
      switch commands {
      case .some(let commands):
        try sink.appendCBOR(array: commands.count)
        for index in 0..<commands.count { try sink.appendCBOR(text: commands[index].bytes) }
      case .none: break
      }
    case .version:
      try sink.appendCBOR(array: 3)
      try sink.appendCBOR(unsigned: version.major)
      try sink.appendCBOR(unsigned: version.minor)
      try sink.appendCBOR(unsigned: version.patch)
    }
  }

  /// Lends the bytes of a secret claim to `body`.
  package borrowing func withSecret<Failure: Error>(
    _ claim: Claim, _ body: (Span<UInt8>) throws(Failure) -> Void
  ) throws(Failure) {
    switch claim.row.kind {
    case .secret32(0): try integrity.withBytes(body)
    case .secret32: try device.withBytes(body)
    case .secret16: try proofKey.withBytes(body)
    case .text64, .text32, .number, .deviceID, .bytes16, .commands, .version: preconditionFailure()
    }
  }
}

extension Claim {
  /// Finds a claim by its label in CBOR; nil if there is none.
  package init?(label: Int64) {
    for claim in Claim.all where claim.label == label {
      self = claim
      return
    }
    return nil
  }

  /// Finds a claim by its name in JSON; nil if there is none.
  package init?(name: borrowing JSONString) {
    for claim in Claim.all where name.equals(claim.name) {
      self = claim
      return
    }
    return nil
  }
}

extension CommandList {
  fileprivate init(_ reader: inout CBORReader) throws(EncodingFault) {
    self.init()
    for _ in 0..<(try reader.arrayHead()) { try append(try reader.boundedText()) }
  }

  fileprivate init(_ reader: inout JSONReader) throws(EncodingFault) {
    self.init()
    var index = try reader.beginArray()
    while try reader.nextElement(&index) { try append(try reader.boundedText()) }
  }
}

extension CBORReader {
  /// Reads a text string of at most `capacity` bytes. Throws `unexpected` for a longer one.
  mutating func boundedText<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text = BoundedText<capacity>(try textString()) else { throw .unexpected }
    return text
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
