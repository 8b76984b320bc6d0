import Foundation
import HoldfastCore
import HoldfastOpenSSL
import Testing

import HoldfastMeasurement

@Suite struct BuiltInKeysTests {
  @Test func `each key is found by its id, and no other id finds one`() throws {
    for index in 0..<BuiltInKeys.count {
      let key = BuiltInKeys.key(at: index)
      let id = try BuiltInKeys.keyID(of: key)
      let found = bytesIfPresent(try BuiltInKeys.key(named: id))
      let expected = copy(key)
      #expect(found == expected)
    }
    let none = bytesIfPresent(try BuiltInKeys.key(named: KeyID()))
    #expect(none == nil)
  }

  @Test func `the development keys follow from a root that everybody can compute`() throws {
    let digest = try sha256(Array("holdfast development measurement proof key".utf8))
    let root = (0..<16).map { digest[$0] }
    let secret = ReleaseRoot(copying: root.span)!
    var cryptography = OpenSSLCryptography()
    let proof = try copy(measurementProofKey(of: secret, using: &cryptography))
    let evidence = try copy(evidenceKey(of: secret, using: &cryptography))
    let isDevelopmentKey = BuiltInKeys.isDevelopmentKey
    #expect((copy(BuiltInKeys.current) == proof) == isDevelopmentKey)
    #expect((copy(BuiltInKeys.evidenceKey(at: 0)) == evidence) == isDevelopmentKey)
  }

  @Test(arguments: Programs.allBuilt)
  func `no program holds a key in one piece, forwards, backwards or as text`(path: String) throws {
    let program = try Data(contentsOf: URL(filePath: path))
    for index in 0..<BuiltInKeys.count {
      for key in [copy(BuiltInKeys.key(at: index)), copy(BuiltInKeys.evidenceKey(at: index))] {
        for pattern in patterns(of: key) {
          #expect(program.range(of: Data(pattern)) == nil)
        }
      }
    }
  }

  @Test func `the search would find a key that is there`() {
    let key = (0..<32).map { UInt8($0 * 7) }
    for pattern in patterns(of: key) {
      #expect(Data([1, 2, 3] + pattern + [4]).range(of: Data(pattern)) == 3..<3 + pattern.count)
    }
  }

  /// The key and its halves, forwards and backwards, as bytes and as hexadecimal text.
  private func patterns(of key: [UInt8]) -> [[UInt8]] {
    let pieces = [key] + stride(from: 0, to: key.count, by: 8).map { Array(key[$0..<$0 + 8]) }
    return (pieces + pieces.map { $0.reversed() }).flatMap { bytes in
      [bytes, Array(hex(bytes.span).utf8), Array(hex(bytes.span).uppercased().utf8)]
    }
  }

  private func copy<let count: Int>(_ key: borrowing Secret<count>) -> [UInt8] {
    key.withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }

  private func bytesIfPresent(_ key: consuming MeasurementProofKey?) -> [UInt8]? {
    guard let key else { return nil }
    return copy(key)
  }
}
