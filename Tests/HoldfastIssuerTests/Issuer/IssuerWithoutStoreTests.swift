import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct IssuerWithoutStoreTests {
  let parties: Parties

  init() throws { parties = try Parties() }

  private func approval() throws -> ImageApproval {
    ImageApproval(
      subject: parties.image().subject, version: parties.image().version,
      keys: try StoreInMemory.release(parties.releaseKeys))
  }

  @Test func `evidence is appraised and a token issued from values only`() throws {
    let submitted = try SubmittedEvidence(parties.evidence())
    #expect(submitted.image == .flat(parties.image().digest))
    let app = try submitted.appraised(as: approval(), now: parties.now)
    #expect(app.subject == parties.image().subject && app.version == parties.image().version)
    let issuer = TokenIssuer(
      name: "issuer.example", key: try MemorySigningKey(scalar: parties.example.secret("keys.issuer_private")))
    let token = try issuer.issue(to: app, for: parties.device(), generation: 1, now: parties.now)
    let opened = try MeasurementTokenWriterTests().open(token.bytes, .cose)
    #expect(opened.claims.contains(parties.example.text("measurement.im")))
    let again = try submitted.appraised(as: approval(), now: parties.now)
    #expect(again.baseline == app.baseline)
    // Computed in Python: SHA-256 of "holdfast/1 issued baseline", a zero byte and IM.
    #expect(hex(app.baseline.bytes) == "5098f6909d1d66b8f3db7abac21ac0b6c6b3c6d4cd82131efd2a503ee63d395e")
  }

  @Test func `a store that knows no tree digests approves none`() throws {
    let store: any ApprovedImages = StoreInMemory(
      StoreInMemory.State(
        images: [parties.image().digest: (parties.image().subject, parties.image().version)],
        devices: [:], keys: parties.releaseKeys))
    #expect(try Self.approves(store, parties.image().digest) == [true, false])
  }

  private static func approves(_ store: some ApprovedImages, _ digest: Digest) throws -> [Bool] {
    var isApproved = [false, false]
    if try store.approval(of: digest) != nil { isApproved[0] = true }
    if try store.approval(ofTree: digest) != nil { isApproved[1] = true }
    return isApproved
  }

  @Test func `the keys of another release authenticate nothing`() throws {
    let submitted = try SubmittedEvidence(parties.evidence())
    let other = ImageApproval(
      subject: "example-app", version: .zero, keys: try ReleaseKeys(of: secret([UInt8](repeating: 7, count: 16))))
    #expect(throws: AppraisalError.refused(.anotherRelease)) {
      _ = try submitted.appraised(as: other, now: parties.now)
    }
  }

  @Test func `the newest release of a key file is its first root`() throws {
    let roots = [UInt8](0..<3).map { [UInt8](repeating: $0, count: 16) }
    let text = Array(roots.map { hex($0) + "\n" }.joined().utf8)
    let keys = try ReleaseKeys(of: secret(roots[0]))
    let newest = try ReleaseKeys(newestInKeyFile: text.span)
    #expect(newest.id == keys.id)
    for wrong in ["", "00", "# nothing\n", String(decoding: text + text, as: UTF8.self)] {
      let bytes = Array(wrong.utf8)
      #expect(throws: ReleaseKeysError.malformedKeyFile) { _ = try ReleaseKeys(newestInKeyFile: bytes.span) }
    }
  }

  @Test func `a key in memory keeps its scalar, and refuses one that is out of range`() throws {
    let key = try MemorySigningKey()
    #expect(try MemorySigningKey(scalar: key.scalar()).publicPoint == key.publicPoint)
    for byte in [0, 0xff] as [UInt8] {
      #expect(throws: CryptographyFailure.self) {
        _ = try MemorySigningKey(scalar: secret([UInt8](repeating: byte, count: 32)))
      }
    }
    let issuer = TokenIssuer(name: "issuer.example", key: key)
    #expect(try PublicKeyJWK(json: Array(issuer.publicKeyJSON.utf8)).point == key.publicPoint)
  }

  @Test(
    arguments: [
      (maximumInteger + 1, 0), (.max, 0), (1, maximumInteger), (1, maximumInteger + 1), (1, .max),
    ] as [(UInt64, UInt64)])
  func `a generation or a time out of range makes no token, and the next call does`(
    generation: UInt64, now: UInt64
  ) throws {
    let app = try SubmittedEvidence(parties.evidence()).appraised(as: approval(), now: parties.now)
    let issuer = TokenIssuer(name: "issuer.example", key: try MemorySigningKey())
    #expect(throws: TokenError.outOfRange) {
      _ = try issuer.issue(
        to: app, for: parties.device(), generation: generation, now: now == 0 ? parties.now : now)
    }
    _ = try issuer.issue(to: app, for: parties.device(), generation: maximumInteger, now: parties.now)
  }
}
