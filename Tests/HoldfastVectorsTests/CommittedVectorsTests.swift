import HoldfastVectors
import TestSupport
import Testing

/// The files that an independent implementation made.
@Suite struct CommittedVectorsTests {
  static let names = [
    "measurement_test.json", "proof_test.json", "measurement_token_test.json", "session_test.json", "oath-hotp.json",
    "oath-totp.json", "oath-ocra.json", "activation_test.json", "seal_test.json",
    "audit_page_test.json", "audit_test.json", "bulletin.json", "state_test.json", "firmware_image_test.json",
    "actuator_test.json", "attestation_token_test.json", "service_discovery_test.json", "frames_test.json",
  ]

  @Test(arguments: names)
  func `every test of a committed file passes`(name: String) throws {
    let file = try VectorFile(parsing: readFile("\(vectorsFolder)/\(name)"), name: name)
    let report = file.replay()
    #expect(report.failures == [])
    #expect(report.faults == [])
    #expect(report.skips == [])
    #expect(report.passed == file.testCount)
  }

  @Test func `no committed file is left out here`() throws {
    #expect(try jsonFiles(in: vectorsFolder) == Self.names.sorted())
  }
}
