/// The labels of the claims in CBOR.
///
/// Source: RFC 8392 §3.1; from -75001 on Holdfast's own.
public enum ClaimLabel {
  public static let issuer: Int64 = 1
  public static let subject: Int64 = 2
  public static let audience: Int64 = 3
  public static let expires: Int64 = 4
  public static let issuedAt: Int64 = 6
  public static let tokenID: Int64 = 7
  public static let integrity: Int64 = -75001
  public static let device: Int64 = -75002
  public static let proofKey: Int64 = -75003
  public static let generation: Int64 = -75004
  public static let maximumUses: Int64 = -75005
  public static let commands: Int64 = -75006
  public static let version: Int64 = -75007
  public static let user: Int64 = -75008
}

extension MeasurementClaims {
  /// Decodes a CWT claims set; an unknown claim makes it `unexpected`.
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
  /// Reads a text string of at most `capacity` bytes.
  mutating func boundedText<let capacity: Int>() throws(EncodingFault) -> BoundedText<capacity> {
    guard let text = BoundedText<capacity>(try textString()) else { throw .unexpected }
    return text
  }

  fileprivate mutating func version() throws(EncodingFault) -> AppVersion {
    try array(of: 3)
    return AppVersion(major: try unsigned(), minor: try unsigned(), patch: try unsigned())
  }
}
