/// The labels of the claims in CBOR.
///
/// Source: RFC 8392 §3.1; the labels from -75001 on are Holdfast's own.
public enum ClaimLabel {
  /// The label of `iss`, text.
  public static let issuer: Int64 = 1
  /// The label of `sub`, text.
  public static let subject: Int64 = 2
  /// The label of `aud`, text.
  public static let audience: Int64 = 3
  /// The label of `exp`, Unix seconds.
  public static let expires: Int64 = 4
  /// The label of `iat`, Unix seconds.
  public static let issuedAt: Int64 = 6
  /// The label of `cti`, which Holdfast calls `jti`, 16 bytes.
  public static let tokenID: Int64 = 7
  /// The label of IM (`imh`), 32 bytes.
  public static let integrity: Int64 = -75001
  /// The label of DM (`dmh`), 32 bytes.
  public static let device: Int64 = -75002
  /// The label of the measurement proof key (`mpk`), 16 bytes.
  public static let proofKey: Int64 = -75003
  /// The label of the generation (`gen`).
  public static let generation: Int64 = -75004
  /// The label of the maximum number of uses (`max`).
  public static let maximumUses: Int64 = -75005
  /// The label of the commands (`cmd`), an array of texts.
  public static let commands: Int64 = -75006
  /// The label of the app version (`ver`), an array of three integers.
  public static let version: Int64 = -75007
  /// The label of the user (`usr`), text.
  public static let user: Int64 = -75008
}

extension MeasurementClaims {
  /// Decodes a CWT claims set. Throws `unexpected` for an unknown claim.
  ///
  /// Source: RFC 8392 §3.
  mutating func decode(cbor: Span<UInt8>) throws(EncodingFault) {
    removeOptional()
    var reader = CBORReader(cbor)
    var order = CBORLabelOrder()
    var seen = ClaimNames()
    for _ in 0..<(try reader.mapHead()) {
      seen.formUnion(try read(label: try reader.label(&order), from: &reader))
    }
    try reader.finish()
    try check(seen)
  }

  private mutating func read(
    label: Int64, from reader: inout CBORReader
  ) throws(EncodingFault) -> ClaimNames {
    switch label {
    case ClaimLabel.issuer:
      issuer = try reader.boundedText()
      return .issuer
    case ClaimLabel.subject:
      subject = try reader.boundedText()
      return .subject
    case ClaimLabel.audience:
      audience = try DeviceID(audience: reader.textString())
      return .audience
    case ClaimLabel.expires:
      expires = try reader.unsigned()
      return .expires
    case ClaimLabel.issuedAt:
      issuedAt = try reader.unsigned()
      return .issuedAt
    case ClaimLabel.tokenID:
      tokenID = try reader.fixedBytes()
      return .tokenID
    case ClaimLabel.integrity:
      try integrity.set(try reader.byteString())
      return .integrity
    case ClaimLabel.device:
      try device.set(try reader.byteString())
      return .device
    case ClaimLabel.proofKey:
      try proofKey.set(try reader.byteString())
      return .proofKey
    case ClaimLabel.generation:
      generation = try reader.unsigned()
      return .generation
    case ClaimLabel.maximumUses: maximumUses = try reader.unsigned()
    case ClaimLabel.commands: commands = try CommandList(&reader)
    case ClaimLabel.version: version = try reader.version()
    case ClaimLabel.user: user = try reader.boundedText()
    default: throw .unexpected
    }
    return []
  }
}

extension CommandList {
  fileprivate init(_ reader: inout CBORReader) throws(EncodingFault) {
    self.init()
    for _ in 0..<(try reader.arrayHead()) { try append(try reader.boundedText()) }
  }
}

extension CBORReader {
  /// Reads a text string of at most `capacity` bytes. Throws `unexpected` for a longer one.
  mutating func boundedText<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text = BoundedText<capacity>(try textString()) else { throw .unexpected }
    return text
  }

  fileprivate mutating func version() throws(EncodingFault) -> AppVersion {
    try array(of: 3)
    return AppVersion(major: try unsigned(), minor: try unsigned(), patch: try unsigned())
  }
}

extension MeasurementClaims {
  /// Decodes a JWT claims set. Throws `unexpected` for an unknown claim.
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

extension MeasurementClaims {
  /// Writes the claims as a CWT claims set in deterministic CBOR.
  ///
  /// Source: RFC 8392 §3; the labels from -75001 on are Holdfast's own.
  package borrowing func appendCBOR<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    var count = 10
    if maximumUses != nil { count += 1 }
    if commands != nil { count += 1 }
    if version != .zero { count += 1 }
    if user != nil { count += 1 }
    try sink.appendCBOR(map: count)
    try sink.appendCBOR(integer: ClaimLabel.issuer)
    try sink.appendCBOR(text: issuer.bytes)
    try sink.appendCBOR(integer: ClaimLabel.subject)
    try sink.appendCBOR(text: subject.bytes)
    try sink.appendCBOR(integer: ClaimLabel.audience)
    var audienceText = ByteBuffer<22>()
    // This cannot fail: 16 bytes are 22 characters.
    try? audienceText.append(asBase64URL: audience.bytes)
    try sink.appendCBOR(text: audienceText.bytes)
    try sink.appendCBOR(integer: ClaimLabel.expires)
    try sink.appendCBOR(unsigned: expires)
    try sink.appendCBOR(integer: ClaimLabel.issuedAt)
    try sink.appendCBOR(unsigned: issuedAt)
    try sink.appendCBOR(integer: ClaimLabel.tokenID)
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(integer: ClaimLabel.integrity)
    try integrity.withBytes { (bytes) throws(Sink.Failure) in try sink.appendCBOR(bytes: bytes) }
    try sink.appendCBOR(integer: ClaimLabel.device)
    try device.withBytes { (bytes) throws(Sink.Failure) in try sink.appendCBOR(bytes: bytes) }
    try sink.appendCBOR(integer: ClaimLabel.proofKey)
    try proofKey.withBytes { (bytes) throws(Sink.Failure) in try sink.appendCBOR(bytes: bytes) }
    try sink.appendCBOR(integer: ClaimLabel.generation)
    try sink.appendCBOR(unsigned: generation)
    try appendOptionalCBOR(to: &sink)
  }

  private borrowing func appendOptionalCBOR<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    if let maximumUses {
      try sink.appendCBOR(integer: ClaimLabel.maximumUses)
      try sink.appendCBOR(unsigned: maximumUses)
    }
    switch commands {
    case .some(let commands):
      try sink.appendCBOR(integer: ClaimLabel.commands)
      try sink.appendCBOR(array: commands.count)
      for index in 0..<commands.count { try sink.appendCBOR(text: commands[index].bytes) }
    case .none: break
    }
    if version != .zero {
      try sink.appendCBOR(integer: ClaimLabel.version)
      try sink.appendCBOR(array: 3)
      try sink.appendCBOR(unsigned: version.major)
      try sink.appendCBOR(unsigned: version.minor)
      try sink.appendCBOR(unsigned: version.patch)
    }
    if let user {
      try sink.appendCBOR(integer: ClaimLabel.user)
      try sink.appendCBOR(text: user.bytes)
    }
  }
}
