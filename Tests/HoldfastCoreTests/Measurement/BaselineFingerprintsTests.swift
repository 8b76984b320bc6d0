import HoldfastOpenSSL
import Testing

import HoldfastCore

@Suite struct BaselineFingerprintsTests {
  let all = ExampleMeasurement.app + ExampleMeasurement.device

  @Test func `a fingerprint is eight bytes of an HMAC over label, id and digest`() throws {
    let component = ExampleMeasurement.app[1]
    var cryptography = OpenSSLCryptography()
    let salt = try ExampleMeasurement.configuration().salt
    var mac = try cryptography.hmacSHA256(key: salt.bytes)
    mac.append("holdfast/1 explain\0app.image\0")
    mac.append(component.digest.bytes)
    let whole: MAC = try mac.finish()
    let entry = try ComponentFingerprint(of: component, salt: salt, using: &cryptography)
    #expect((0..<8).map { entry.fingerprint[$0] } == (0..<8).map { whole[$0] })
  }

  @Test func `nothing changed between two fingerprints of the same`() throws {
    #expect(try fingerprints(all).changedComponents(since: fingerprints(all.reversed())).isEmpty)
  }

  @Test func `what changed, came or went is named, sorted by its bytes`() throws {
    var now = all
    now[1] = Component(id: all[1].id, digest: all[2].digest)
    now.removeLast()
    now.append(Component(id: "app.added", digest: all[0].digest))
    let changed = try fingerprints(now).changedComponents(since: fingerprints(all))
    #expect(changed == ["app.added", "app.image", "device.secret"])
  }

  @Test func `fingerprints are written and read`() throws {
    let before = try fingerprints(all)
    #expect(try BaselineFingerprints(decoding: before.encoded().span) == before)
  }

  @Test func `unsorted, repeated, truncated and too many fingerprints are refused`() throws {
    let sorted = try fingerprints(Array(all[..<2])).encoded()
    let size = (sorted.count - 1) / 2
    let unsorted = [sorted[0]] + sorted[(1 + size)...] + sorted[1...size]
    #expect(throws: EncodingFault.self) { try BaselineFingerprints(decoding: unsorted.span) }
    let repeated = [sorted[0]] + sorted[1...size] + sorted[1...size]
    #expect(throws: EncodingFault.unexpected) { try BaselineFingerprints(decoding: repeated.span) }
    #expect(throws: EncodingFault.malformed) {
      try BaselineFingerprints(decoding: sorted.span.extracting(droppingLast: 1))
    }
    let huge: [UInt8] = [0x98, 65]
    #expect(throws: EncodingFault.tooLong) { try BaselineFingerprints(decoding: huge.span) }
  }

  private func fingerprints(_ components: [Component]) throws -> BaselineFingerprints {
    var cryptography = OpenSSLCryptography()
    return try BaselineFingerprints(
      of: components, salt: ExampleMeasurement.configuration().salt, using: &cryptography)
  }
}
