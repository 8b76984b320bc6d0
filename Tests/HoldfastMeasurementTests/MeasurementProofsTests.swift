import HoldfastCore
import HoldfastMeasurement
import Testing

/// The library's two functions; what they prove is tested through the programs that call them.
@Suite struct MeasurementProofsTests {
  let nonce = [UInt8](repeating: 1, count: 16)

  @Test(arguments: [0, 15, 17, 32])
  func `a nonce that is not 16 bytes is refused`(count: Int) {
    let nonce = [UInt8](repeating: 1, count: count)
    #expect(throws: MeasurementError.nonceLength) {
      try integrityMeasurementProof(nonce: nonce, configuration: [], keys: .default)
    }
    #expect(throws: MeasurementError.nonceLength) {
      try deviceMeasurementProof(nonce: nonce, configuration: [], keys: .default)
    }
  }

  @Test func `bytes that are not a configuration are refused`() {
    let refusal = MeasurementError.malformedConfiguration(.malformed)
    #expect(throws: refusal) { try integrityMeasurementProof(nonce: nonce, configuration: [], keys: .default) }
    #expect(throws: refusal) { try deviceMeasurementProof(nonce: nonce, configuration: [0xff], keys: .default) }
  }

  @Test func `a key that is none of the app's is refused`() throws {
    let configuration = try configuration(key: TypedBytes(), app: "app.text", device: "device.cpu")
    #expect(throws: MeasurementError.unknownKey) {
      try integrityMeasurementProof(nonce: nonce, configuration: configuration, keys: .default)
    }
  }

  @Test func `a component that Linux does not have is refused`() throws {
    let key = try ProofKeys.default.currentID()
    let configuration = try configuration(key: key, app: "app.text", device: "device.imei")
    #expect(throws: MeasurementError.unknownComponent) {
      try deviceMeasurementProof(nonce: nonce, configuration: configuration, keys: .default)
    }
  }

  @Test func `proofs are 32 bytes, repeat, and differ with the nonce`() throws {
    let key = try ProofKeys.default.currentID()
    let configuration = try configuration(key: key, app: "os.release", device: "device.cpu")
    let proof = try integrityMeasurementProof(nonce: nonce, configuration: configuration, keys: .default)
    #expect(proof.count == 32)
    #expect(try integrityMeasurementProof(nonce: nonce, configuration: configuration, keys: .default) == proof)
    let other = [UInt8](repeating: 2, count: 16)
    #expect(try integrityMeasurementProof(nonce: other, configuration: configuration, keys: .default) != proof)
    #expect(try deviceMeasurementProof(nonce: nonce, configuration: configuration, keys: .default) != proof)
  }

  private func configuration(key: KeyID, app: ComponentID, device: ComponentID) throws -> [UInt8] {
    try MeasurementConfiguration(salt: TypedBytes(), mpkID: key, appIDs: [app], deviceIDs: [device], created: 0)
      .encoded()
  }
}
