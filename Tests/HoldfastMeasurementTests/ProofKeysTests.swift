import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastMeasurement

@Suite struct ProofKeysTests {
  /// The keys of two releases, whose bytes are their index and position.
  let keys = ProofKeys(count: 2, measurementProofKey: { fill(&$1, $0, 0) }, evidenceKey: { fill(&$1, $0, 100) })

  @Test func `each key is the one of its release, and is found by its id`() throws {
    var cryptography = OpenSSLCryptography()
    for index in 0..<2 {
      #expect(copy(keys.measurementProofKey(at: index)) == (0..<16).map { UInt8(16 * index + $0) })
      #expect(copy(keys.evidenceKey(at: index)) == (0..<32).map { UInt8(100 + 16 * index + $0) })
      let id = try measurementProofKeyID(keys.measurementProofKey(at: index), using: &cryptography)
      let found = bytesIfPresent(try keys.measurementProofKey(named: id))
      #expect(found == copy(keys.measurementProofKey(at: index)))
    }
    let none = bytesIfPresent(try keys.measurementProofKey(named: ProofKeys.default.currentID()))
    #expect(none == nil)
  }

  @Test func `the default keys follow from a root that everybody can compute`() throws {
    let keys = try ReleaseKeys(of: ReleaseRoots.default().root(at: 0))
    #expect(copy(ProofKeys.default.measurementProofKey()) == copy(keys.proof))
    #expect(copy(ProofKeys.default.evidenceKey()) == copy(keys.evidence))
    #expect(ProofKeys.default.count == 1)
  }

  @Test func `keys are the default ones by what they are, whoever made them`() {
    let disguised = ProofKeys(
      count: 2,
      measurementProofKey: { index, key in
        guard index == 0 else { return fill(&key, index, 0) }
        ProofKeys.default.measurementProofKey().withBytes { for index in 0..<16 { key[index] = $0[index] } }
      }, evidenceKey: { fill(&$1, $0, 100) })
    #expect(ProofKeys.default.isDefault && disguised.isDefault && !keys.isDefault)
  }

  @Test(arguments: [0, 65]) func `an app without a release, or with too many, ends`(count: Int) async {
    await #expect(processExitsWith: .failure) { [count] in
      _ = ProofKeys(count: count, measurementProofKey: { _, _ in }, evidenceKey: { _, _ in })
    }
  }

  @Test func `a baseline and a proof with the default key warn once, and others do not`() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let own = ProofKeys(count: 1, measurementProofKey: { fill(&$1, $0, 0) }, evidenceKey: { fill(&$1, $0, 100) })
      own.warnIfDefault()
      ProofKeys.default.warnIfDefault()
      ProofKeys.default.warnIfDefault()
    }
    let said = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(said.split(separator: "\n").count { $0.contains("has the default key, which everybody knows") } == 1)
  }

  private func copy<let count: Int>(_ key: borrowing Secret<count>) -> [UInt8] {
    key.withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }

  private func bytesIfPresent(_ key: consuming MeasurementProofKey?) -> [UInt8]? {
    guard let key else { return nil }
    return copy(key)
  }
}

private func fill(_ key: inout MutableSpan<UInt8>, _ index: Int, _ start: Int) {
  for position in key.indices { key[position] = UInt8(start + 16 * index + position) }
}
