/// An app's statement to the attestation service: its measurements, their configuration, and the properties that it
/// noticed.
package struct Evidence: Sendable, Hashable {
  /// The most properties that evidence carries.
  package static let maximumPropertyCount = 16

  /// The configuration of the baseline.
  package let configuration: MeasurementConfiguration
  /// One component for each id of app scope in the configuration, in its order.
  package let app: [Component]
  /// One component for each id of device scope, the prover's host, in the configuration, in its order.
  package let device: [Component]
  /// The app's claim about its name, text of 1 to 64 bytes; nil for no claim. The service's policy decides by the
  /// image.
  package let subject: BoundedText<64>?
  /// The app's claim about its version; nil for no claim. The service's policy decides by the image.
  package let version: AppVersion?
  /// The properties that Holdfast noticed, such as `debugger`: sorted by their bytes, none twice.
  package let properties: [BoundedText<32>]
  /// The statements that only evidence of version 2 has; nil for version 1.
  package let statements: EvidenceStatements?

  /// Creates evidence from its parts.
  ///
  /// - Parameter statements: what only version 2 has; nil for evidence of version 1.
  /// - Throws: `unexpected` if the components are not those of the configuration, the subject is an empty text, or
  ///   properties are empty texts, out of order or repeated; `tooLong` for more than 16 properties or a version number
  ///   above 2^53 - 1.
  package init(
    configuration: MeasurementConfiguration, app: [Component], device: [Component], subject: BoundedText<64>?,
    version: AppVersion?, properties: [BoundedText<32>], statements: EvidenceStatements? = nil
  ) throws(EncodingFault) {
    guard configuration.matches(app: app, device: device) else { throw .unexpected }
    try Self.check(properties)
    if let version {
      guard max(version.major, version.minor, version.patch) <= maximumInteger else { throw .tooLong }
    }
    if let subject, subject.isEmpty { throw .unexpected }
    self.configuration = configuration
    self.app = app
    self.device = device
    self.subject = subject
    self.version = version
    self.properties = properties
    self.statements = statements
  }

  /// Checks that there are at most 16 properties, none empty, sorted by their bytes and none twice.
  static func check<let capacity: Int>(_ properties: [BoundedText<capacity>]) throws(EncodingFault) {
    guard properties.count <= maximumPropertyCount else { throw .tooLong }
    for index in properties.indices {
      guard !properties[index].isEmpty, index == 0 || properties[index - 1].precedes(properties[index])
      else { throw .unexpected }
    }
  }
}

/// The statements of an app that evidence has since version 2.
package struct EvidenceStatements: Sendable, Hashable {
  /// The app's properties, each text of 1 to 128 bytes: at most 16, sorted by their bytes, none twice.
  package let appProperties: [BoundedText<128>]
  /// `ID` of the host's `/etc/os-release`, text of 1 to 64 bytes; nil if there is none.
  package let systemID: BoundedText<64>?
  /// `VERSION_ID` of the host's `/etc/os-release`, text of 1 to 64 bytes; nil if there is none.
  package let systemVersion: BoundedText<64>?
  /// The user property, at most 128 characters of printable ASCII; nil if the app set none.
  package let userProperty: BoundedText<128>?

  /// Creates statements.
  ///
  /// - Throws: `unexpected` if app properties are empty texts, out of order or repeated, a text about the system is
  ///   empty, or the user property has other characters than printable ASCII; `tooLong` for more than 16 properties.
  package init(
    appProperties: [BoundedText<128>] = [], systemID: BoundedText<64>? = nil, systemVersion: BoundedText<64>? = nil,
    userProperty: BoundedText<128>? = nil
  ) throws(EncodingFault) {
    try Evidence.check(appProperties)
    if systemID?.isEmpty ?? false || systemVersion?.isEmpty ?? false { throw .unexpected }
    if let userProperty {
      let bytes = userProperty.bytes
      for index in bytes.indices where !(0x20...0x7e).contains(bytes[index]) { throw .unexpected }
    }
    self.appProperties = appProperties
    self.systemID = systemID
    self.systemVersion = systemVersion
    self.userProperty = userProperty
  }
}

extension Evidence {
  private static let imageID = ComponentID("app.image" as StaticString)

  /// The digest of the app's executable, the component `app.image`, in the form that the configuration demands; nil if it is missing.
  package var image: ImageDigest? {
    guard let digest = app.first(where: { $0.id == Self.imageID })?.digest else { return nil }
    return configuration.policy.contains(.treeDigests) ? .tree(digest) : .flat(digest)
  }

  /// The label that begins the bytes under the MAC.
  static let domain: StaticString = "holdfast/1 evidence"

  /// Encodes and authenticates the evidence.
  ///
  /// The result is the deterministic CBOR array `[1, configuration (bytes), [[id, digest] …] app,
  /// [[id, digest] …] device, subject / null, [major, minor, patch] / null, [property …], mac]` with
  /// `mac = HMAC-SHA-256(evidence key, "holdfast/1 evidence" ‖ 0x00 ‖ the array of the elements before)`. Evidence with
  /// statements begins with 2 and has four more elements before the MAC: `[app property …], system id / null,
  /// system version / null, user property / null`.
  ///
  /// - Parameter key: the evidence key, 32 bytes, of the release whose MPK the configuration names.
  /// - Returns: the encoded evidence. IM and DM can be computed from it, so it must travel encrypted.
  /// - Throws: if the cryptographic library fails.
  package func encoded<Backend: Cryptography & ~Copyable>(
    authenticatedWith key: borrowing EvidenceKey, using cryptography: inout Backend
  ) throws(CryptographyFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: elementCount + 1)
    encodeElements(into: &bytes)
    let mac = try mac(key, using: &cryptography)
    bytes.appendCBOR(bytes: mac.bytes)
    return bytes
  }

  func mac<Backend: Cryptography & ~Copyable>(
    _ key: borrowing EvidenceKey, using cryptography: inout Backend
  ) throws(CryptographyFailure) -> MAC {
    var mac = try key.withBytes { (bytes: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hmacSHA256(key: bytes)
    }
    mac.append(domain: Self.domain)
    mac.appendCBOR(array: elementCount)
    encodeElements(into: &mac)
    return try mac.finish()
  }

  /// The number of elements before the MAC.
  private var elementCount: Int { statements == nil ? 7 : 11 }

  private func encodeElements<Sink: ByteSink & ~Copyable>(into sink: inout Sink) where Sink.Failure == Never {
    sink.appendCBOR(unsigned: statements == nil ? 1 : 2)
    sink.appendCBOR(bytes: configuration.encoded().span)
    for components in [app, device] {
      sink.appendCBOR(array: components.count)
      for component in components { component.encode(into: &sink) }
    }
    Self.encode(subject, into: &sink)
    if let version {
      sink.appendCBOR(array: 3)
      for number in [version.major, version.minor, version.patch] { sink.appendCBOR(unsigned: number) }
    } else {
      sink.appendCBORNull()
    }
    Self.encode(properties, into: &sink)
    guard let statements else { return }
    Self.encode(statements.appProperties, into: &sink)
    Self.encode(statements.systemID, into: &sink)
    Self.encode(statements.systemVersion, into: &sink)
    Self.encode(statements.userProperty, into: &sink)
  }

  private static func encode<let capacity: Int, Sink: ByteSink & ~Copyable>(
    _ text: BoundedText<capacity>?, into sink: inout Sink
  ) where Sink.Failure == Never {
    if let text { sink.appendCBOR(text: text.bytes) } else { sink.appendCBORNull() }
  }

  private static func encode<let capacity: Int, Sink: ByteSink & ~Copyable>(
    _ texts: [BoundedText<capacity>], into sink: inout Sink
  ) where Sink.Failure == Never {
    sink.appendCBOR(array: texts.count)
    for text in texts { sink.appendCBOR(text: text.bytes) }
  }

  /// Decodes the elements before the MAC, and the head of the array.
  init(from reader: inout CBORReader) throws(EncodingFault) {
    let count = try reader.arrayHead()
    guard count == 8 || count == 12, try reader.unsigned() == (count == 8 ? 1 : 2) else { throw .unexpected }
    let configuration = try MeasurementConfiguration(decoding: reader.byteString())
    let app = try Self.readComponents(&reader)
    let device = try Self.readComponents(&reader)
    let subject: BoundedText<64>? = try Self.readText(&reader)
    let version = try Self.readVersion(&reader)
    let properties: [BoundedText<32>] = try Self.readTexts(&reader)
    var statements: EvidenceStatements?
    if count == 12 {
      statements = try EvidenceStatements(
        appProperties: Self.readTexts(&reader), systemID: Self.readText(&reader),
        systemVersion: Self.readText(&reader), userProperty: Self.readText(&reader))
    }
    try self.init(
      configuration: configuration, app: app, device: device, subject: subject, version: version,
      properties: properties, statements: statements)
  }

  private static func readText<let capacity: Int>(
    _ reader: inout CBORReader
  ) throws(EncodingFault) -> BoundedText<capacity>? {
    if reader.null() { return nil }
    guard let text = BoundedText<capacity>(try reader.textString()) else { throw .tooLong }
    return text
  }

  private static func readTexts<let capacity: Int>(
    _ reader: inout CBORReader
  ) throws(EncodingFault) -> [BoundedText<capacity>] {
    let count = try reader.arrayHead()
    guard count <= maximumPropertyCount else { throw .tooLong }
    var texts: [BoundedText<capacity>] = []
    for _ in 0..<count {
      guard let text = BoundedText<capacity>(try reader.textString()) else { throw .tooLong }
      texts.append(text)
    }
    return texts
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

/// Evidence whose form was checked, but not yet its MAC: anyone may have made it.
package struct UnverifiedEvidence: Sendable {
  private let evidence: Evidence
  private let mac: MAC

  /// Decodes evidence.
  ///
  /// - Parameter bytes: the result of ``Evidence/encoded(authenticatedWith:using:)``.
  package init(decoding bytes: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(bytes)
    evidence = try Evidence(from: &reader)
    mac = try reader.fixedBytes()
    try reader.finish()
  }

  /// The id of the measurement proof key of the release that the evidence names, 8 bytes.
  package var releaseID: KeyID { evidence.configuration.mpkID }

  /// The digest of the app's executable that the evidence states; nil if the component is missing.
  package var image: ImageDigest? { evidence.image }

  /// The salt of the baseline that the evidence states.
  package var salt: ConfigurationSalt { evidence.configuration.salt }

  /// Checks the MAC, in constant time.
  ///
  /// - Parameter key: the evidence key of the release that the evidence names.
  /// - Throws: if the MAC is wrong, or the library failed.
  package func verified<Backend: Cryptography & ~Copyable>(
    with key: borrowing EvidenceKey, using cryptography: inout Backend
  ) throws(CryptographyFailure) -> AuthenticEvidence {
    let expected = try evidence.mac(key, using: &cryptography)
    guard constantTimeEqual(expected.bytes, mac.bytes) else { throw CryptographyFailure() }
    return AuthenticEvidence(evidence)
  }
}

/// Evidence whose MAC was checked: it was made by an app that holds the evidence key of the release that it names.
package struct AuthenticEvidence: Sendable {
  /// The app's statement.
  package let evidence: Evidence

  fileprivate init(_ evidence: Evidence) { self.evidence = evidence }

  /// Decodes evidence and checks its MAC.
  ///
  /// - Parameters:
  ///   - bytes: the result of ``Evidence/encoded(authenticatedWith:using:)``.
  ///   - findKey: returns the evidence key of the release whose measurement proof key has the given id, or nil.
  /// - Throws: `malformed` if the bytes are not evidence, `unknownKey` if there is no such key, `notAuthentic` if the
  ///   MAC is wrong or the library failed.
  ///
  /// The MAC is compared in constant time.
  package init<Backend: Cryptography & ~Copyable>(
    opening bytes: Span<UInt8>, using cryptography: inout Backend, findKey: (KeyID) -> EvidenceKey?
  ) throws(EvidenceFault) {
    let unverified: UnverifiedEvidence
    do throws(EncodingFault) { unverified = try UnverifiedEvidence(decoding: bytes) } catch { throw .malformed(error) }
    guard let key = findKey(unverified.releaseID) else { throw .unknownKey }
    do throws(CryptographyFailure) { self = try unverified.verified(with: key, using: &cryptography) } catch {
      throw .notAuthentic
    }
  }
}

/// The reason why evidence is refused.
package enum EvidenceFault: Error, Equatable {
  /// The bytes are not evidence.
  case malformed(EncodingFault)
  /// No measurement proof key has the id that the configuration names.
  case unknownKey
  /// The MAC is wrong, or the cryptographic library failed.
  case notAuthentic
}
