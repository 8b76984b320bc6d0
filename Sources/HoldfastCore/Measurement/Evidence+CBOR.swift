extension Evidence {
  /// The label that begins the bytes under the MAC.
  static let domain: StaticString = "holdfast/1 evidence"

  /// Encodes and authenticates the evidence.
  ///
  /// The deterministic CBOR array `[1, configuration (bytes), [[id, digest] …] app, [[id, digest] …] device, subject / null,
  /// [major, minor, patch] / null, [property …], mac]` with `mac = HMAC-SHA-256(evidence key, "holdfast/1 evidence" ‖ 0x00 ‖
  /// the array of the first seven elements)`.
  ///
  /// - Parameter key: the 32 bytes of the evidence key of the release whose MPK the configuration names.
  /// - Returns: bytes that hold what IM and DM are made of; they travel encrypted.
  /// - Throws: when the cryptographic library fails.
  public func encoded<Backend: Cryptography & ~Copyable>(
    authenticatedWith key: borrowing EvidenceKey, using cryptography: inout Backend
  ) throws(CryptographyFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: 8)
    encodeElements(into: &bytes)
    let mac = try mac(key, using: &cryptography)
    bytes.appendCBOR(bytes: mac.bytes)
    return bytes
  }

  func mac<Backend: Cryptography & ~Copyable>(
    _ key: borrowing EvidenceKey, using cryptography: inout Backend
  ) throws(CryptographyFailure) -> FixedBytes<32> {
    var mac = try key.withBytes { (bytes: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hmacSHA256(key: bytes)
    }
    mac.append(domain: Self.domain)
    mac.appendCBOR(array: 7)
    encodeElements(into: &mac)
    return try mac.finish()
  }

  private func encodeElements<Sink: ByteSink & ~Copyable>(into sink: inout Sink) where Sink.Failure == Never {
    sink.appendCBOR(unsigned: 1)
    sink.appendCBOR(bytes: configuration.encoded().span)
    for components in [app, device] {
      sink.appendCBOR(array: components.count)
      for component in components { component.encode(into: &sink) }
    }
    if let subject { sink.appendCBOR(text: subject.bytes) } else { sink.appendCBORNull() }
    if let version {
      sink.appendCBOR(array: 3)
      for number in [version.major, version.minor, version.patch] { sink.appendCBOR(unsigned: number) }
    } else {
      sink.appendCBORNull()
    }
    sink.appendCBOR(array: properties.count)
    for property in properties { sink.appendCBOR(text: property.bytes) }
  }

  /// Reads the first seven elements.
  init(from reader: inout CBORReader) throws(EncodingFault) {
    guard try reader.unsigned() == 1 else { throw .unexpected }
    let configuration = try MeasurementConfiguration(decoding: reader.byteString())
    let app = try Self.readComponents(&reader)
    let device = try Self.readComponents(&reader)
    let subject = try Self.readSubject(&reader)
    let version = try Self.readVersion(&reader)
    let propertyCount = try reader.arrayHead()
    guard propertyCount <= Self.maximumPropertyCount else { throw .tooLong }
    var properties: [BoundedText<32>] = []
    for _ in 0..<propertyCount {
      guard let property = BoundedText<32>(try reader.textString()) else { throw .tooLong }
      properties.append(property)
    }
    try self.init(
      configuration: configuration, app: app, device: device, subject: subject, version: version,
      properties: properties)
  }

  private static func readSubject(_ reader: inout CBORReader) throws(EncodingFault) -> BoundedText<64>? {
    if reader.null() { return nil }
    guard let subject = BoundedText<64>(try reader.textString()) else { throw .tooLong }
    return subject
  }

  private static func readVersion(_ reader: inout CBORReader) throws(EncodingFault) -> AppVersion? {
    if reader.null() { return nil }
    try reader.array(of: 3)
    return AppVersion(major: try reader.unsigned(), minor: try reader.unsigned(), patch: try reader.unsigned())
  }

  private static func readComponents(_ reader: inout CBORReader) throws(EncodingFault) -> [Component] {
    let count = try reader.arrayHead()
    guard count <= MeasurementConfiguration.maximumComponentCount else { throw .tooLong }
    var components: [Component] = []
    for _ in 0..<count { components.append(try Component(from: &reader)) }
    return components
  }
}
