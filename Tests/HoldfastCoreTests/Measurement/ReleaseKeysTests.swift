import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

@Suite struct ReleaseKeysTests {
  @Test func `the keys of a known root are the published ones`() throws {
    var cryptography = OpenSSLCryptography()
    let root: ReleaseRoot = secret((0..<16).map { UInt8($0) })
    let evidence = try evidenceKey(of: root, using: &cryptography).withBytes { hex($0) }
    let proof = try measurementProofKey(of: root, using: &cryptography)
    #expect(evidence == "6bc2e2b27ecc91a64dd7893e4ec11fb545d805e273c3dedcec7b69ec1a8a7744")
    #expect(proof.withBytes { hex($0) } == "18c214520a5dc921129b5e524bfa60ba")
    #expect(hex(try measurementProofKeyID(proof, using: &cryptography).bytes) == "827d4045020162ce")
  }
}
