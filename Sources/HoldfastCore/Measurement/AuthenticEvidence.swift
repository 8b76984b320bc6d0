/// Evidence whose MAC was checked: an app made it that holds the evidence key of the release it names.
public struct AuthenticEvidence: Sendable {
  /// The app's statement.
  public let evidence: Evidence

  /// Reads evidence and checks its MAC.
  ///
  /// - Parameters:
  ///   - bytes: what ``Evidence/encoded(authenticatedWith:using:)`` gave.
  ///   - findKey: the evidence key of the release whose measurement proof key has an id, or nil.
  /// - Throws: `malformed` when the bytes are not evidence, `unknownKey` when there is no such key, `notAuthentic` when
  ///   the MAC is wrong or the library failed.
  ///
  /// The MAC is compared in constant time.
  public init<Backend: Cryptography & ~Copyable>(
    opening bytes: Span<UInt8>, using cryptography: inout Backend, findKey: (KeyID) -> EvidenceKey?
  ) throws(EvidenceFault) {
    let evidence: Evidence
    let mac: FixedBytes<32>
    do throws(EncodingFault) {
      var reader = CBORReader(bytes)
      try reader.array(of: 8)
      evidence = try Evidence(from: &reader)
      mac = try reader.fixedBytes()
      try reader.finish()
    } catch {
      throw .malformed(error)
    }
    guard let key = findKey(evidence.configuration.mpkID) else { throw .unknownKey }
    do throws(CryptographyFailure) {
      let expected = try evidence.mac(key, using: &cryptography)
      guard constantTimeEqual(expected.bytes, mac.bytes) else { throw CryptographyFailure() }
    } catch {
      throw .notAuthentic
    }
    self.evidence = evidence
  }
}

/// Why evidence is refused.
public enum EvidenceFault: Error, Equatable {
  /// The bytes are not evidence.
  case malformed(EncodingFault)
  /// No measurement proof key has the id that the configuration names.
  case unknownKey
  /// The MAC is wrong, or the cryptographic library failed.
  case notAuthentic
}
