import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

@Suite struct EvidenceTests {
  @Test func `evidence is opened with the key that its configuration names`() throws {
    let evidence = try ExampleMeasurement.evidence()
    #expect(try open(encoded(evidence)).evidence == evidence)
  }

  @Test func `evidence without a claim about name or version stays without one`() throws {
    let evidence = try Evidence(
      configuration: ExampleMeasurement.configuration(), app: ExampleMeasurement.app, device: ExampleMeasurement.device,
      subject: nil, version: nil, properties: [])
    let opened = try open(encoded(evidence)).evidence
    #expect(opened == evidence)
    #expect(opened.subject == nil && opened.version == nil)
  }

  @Test func `evidence is an array of eight, and its MAC is over the first seven under a label of its own`() throws {
    let bytes = try encoded(ExampleMeasurement.evidence())
    #expect(bytes.first == 0x88)
    var authenticated = Array("holdfast/1 evidence\0".utf8) + bytes
    authenticated.removeLast(34)
    authenticated[20] = 0x87
    var cryptography = OpenSSLCryptography()
    var mac = try ExampleMeasurement.evidenceKey.withBytes { try cryptography.hmacSHA256(key: $0) }
    mac.append(authenticated.span)
    let expected: MAC = try mac.finish()
    #expect(Array(bytes.suffix(34)) == [0x58, 0x20] + (0..<32).map { expected[$0] })
  }

  @Test func `no single changed bit of evidence opens`() throws {
    let bytes = try encoded(ExampleMeasurement.evidence())
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1 << UInt8(index % 8)
      #expect(throws: EvidenceFault.self, "byte \(index)") { try open(changed) }
    }
  }

  @Test func `a wrong MAC and another key are one refusal`() throws {
    var bytes = try encoded(ExampleMeasurement.evidence())
    #expect(throws: EvidenceFault.notAuthentic) { try open(bytes, key: [UInt8](repeating: 1, count: 32)) }
    bytes[bytes.count - 1] ^= 1
    #expect(throws: EvidenceFault.notAuthentic) { try open(bytes) }
  }

  @Test func `evidence under a key that nobody knows is refused`() throws {
    let bytes = try encoded(ExampleMeasurement.evidence())
    var cryptography = OpenSSLCryptography()
    #expect(throws: EvidenceFault.unknownKey) {
      try AuthenticEvidence(opening: bytes.span, using: &cryptography) { _ in nil }
    }
  }

  @Test func `truncated evidence, and evidence with more behind it, are malformed`() throws {
    let bytes = try encoded(ExampleMeasurement.evidence())
    for count in stride(from: 0, to: bytes.count, by: 7) {
      #expect(throws: EvidenceFault.malformed(.malformed)) { try open(Array(bytes[..<count])) }
    }
    #expect(throws: EvidenceFault.malformed(.malformed)) { try open(bytes + [0]) }
  }

  @Test func `components must be those of the configuration, and properties sorted and not repeated`() throws {
    #expect(throws: EncodingFault.unexpected) { try evidence(app: ExampleMeasurement.app.reversed()) }
    #expect(throws: EncodingFault.unexpected) { try evidence(properties: ["b", "a"]) }
    #expect(throws: EncodingFault.unexpected) { try evidence(properties: ["a", "a"]) }
    #expect(throws: EncodingFault.unexpected) { try evidence(properties: [""]) }
    #expect(throws: EncodingFault.unexpected) { try evidence(subject: "") }
    #expect(throws: EncodingFault.tooLong) {
      try evidence(version: AppVersion(major: 0, minor: maximumInteger + 1, patch: 0))
    }
    let many = (10..<27).map { BoundedText<32>("p\($0)")! }
    #expect(throws: EncodingFault.tooLong) { try evidence(properties: many) }
  }

  @Test func `evidence of version 2 is an array of twelve, and its MAC is over the first eleven`() throws {
    let bytes = try encoded(ExampleMeasurement.evidenceWithStatements())
    #expect(bytes.first == 0x8c && bytes[1] == 2)
    var authenticated = Array("holdfast/1 evidence\0".utf8) + bytes
    authenticated.removeLast(34)
    authenticated[20] = 0x8b
    var cryptography = OpenSSLCryptography()
    var mac = try ExampleMeasurement.evidenceKey.withBytes { try cryptography.hmacSHA256(key: $0) }
    mac.append(authenticated.span)
    let expected: MAC = try mac.finish()
    #expect(Array(bytes.suffix(34)) == [0x58, 0x20] + (0..<32).map { expected[$0] })
  }

  @Test func `statements come back as they were made, and evidence of version 1 has none`() throws {
    let evidence = try ExampleMeasurement.evidenceWithStatements()
    #expect(try open(encoded(evidence)).evidence == evidence)
    #expect(try open(encoded(ExampleMeasurement.evidence())).evidence.statements == nil)
  }

  @Test func `no single changed bit of evidence with statements opens, and no cut`() throws {
    let bytes = try encoded(ExampleMeasurement.evidenceWithStatements())
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1 << UInt8(index % 8)
      #expect(throws: EvidenceFault.self, "byte \(index)") { try open(changed) }
    }
    for count in stride(from: 0, to: bytes.count, by: 7) {
      #expect(throws: EvidenceFault.malformed(.malformed)) { try open(Array(bytes[..<count])) }
    }
    #expect(throws: EvidenceFault.malformed(.malformed)) { try open(bytes + [0]) }
  }

  @Test func `statements are sorted, not repeated and not empty, and the user property is printable`() throws {
    #expect(throws: EncodingFault.unexpected) { try EvidenceStatements(appProperties: ["b", "a"]) }
    #expect(throws: EncodingFault.unexpected) { try EvidenceStatements(appProperties: ["a", "a"]) }
    #expect(throws: EncodingFault.unexpected) { try EvidenceStatements(appProperties: [""]) }
    let many = (10..<27).map { BoundedText<128>("p\($0)")! }
    #expect(throws: EncodingFault.tooLong) { try EvidenceStatements(appProperties: many) }
    #expect(throws: EncodingFault.unexpected) { try EvidenceStatements(systemID: "") }
    #expect(throws: EncodingFault.unexpected) { try EvidenceStatements(systemVersion: "") }
    for text in ["a\n", "\u{7f}", "é"] {
      #expect(throws: EncodingFault.unexpected) { try EvidenceStatements(userProperty: BoundedText(text)) }
    }
    #expect(try EvidenceStatements(userProperty: "").userProperty?.isEmpty == true)
    #expect(BoundedText<128>(String(repeating: "x", count: 129)) == nil)
  }

  private func evidence(
    app: [Component] = ExampleMeasurement.app, properties: [BoundedText<32>] = [],
    subject: BoundedText<64> = "app", version: AppVersion = .zero
  ) throws -> Evidence {
    try Evidence(
      configuration: ExampleMeasurement.configuration(), app: app, device: ExampleMeasurement.device, subject: subject,
      version: version, properties: properties)
  }

  private func encoded(_ evidence: Evidence) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    return try evidence.encoded(authenticatedWith: ExampleMeasurement.evidenceKey, using: &cryptography)
  }

  private func open(
    _ bytes: [UInt8], key: [UInt8] = ExampleMeasurement.evidenceKeyBytes
  ) throws -> AuthenticEvidence {
    var cryptography = OpenSSLCryptography()
    return try AuthenticEvidence(opening: bytes.span, using: &cryptography) { _ in secret(key) }
  }
}
