import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// IM, DM and their proofs.
@Suite struct MeasurementTests {
  let example = WorkedExample.shared

  @Test func `the measured components are encoded as in the worked example`() throws {
    #expect(encoded(ExampleMeasurement.device) == example.bytes("measurement.C_device"))
    let all = (ExampleMeasurement.app + ExampleMeasurement.device).sorted { $0.id.precedes($1.id) }
    #expect(encoded(all) == example.bytes("measurement.C"))
  }

  @Test func `IM and DM are those of the worked example`() throws {
    let (integrity, device) = try measurements(ExampleMeasurement.configuration())
    #expect(integrity == example.bytes("measurement.im"))
    #expect(device == example.bytes("measurement.dm"))
  }

  @Test func `the key id in the worked example's configuration is its key's`() throws {
    var cryptography = OpenSSLCryptography()
    let id = try measurementProofKeyID(ExampleMeasurement.key, using: &cryptography)
    #expect(id == (try ExampleMeasurement.configuration().mpkID))
  }

  @Test(arguments: ["cose", "jose", "reference"])
  func `both proofs are those of the worked example`(name: String) throws {
    let round = example.round(name)
    var cryptography = OpenSSLCryptography()
    for (measurement, proof) in [("im", "imp"), ("dm", "dmp")] {
      let computed = try measurementProof(
        key: ExampleMeasurement.key, nonce: fixed(hex(round["nonce"]!)),
        measurement: secret(example.bytes("measurement.\(measurement)")), using: &cryptography)
      #expect(hex(computed.bytes) == round[proof])
    }
  }

  @Test func `every changed byte of a configuration that can still be read changes IM and DM`() throws {
    let bytes = ExampleMeasurement.encoded
    let whole = try measurements(ExampleMeasurement.configuration())
    var readable = 0
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1
      guard let configuration = try? MeasurementConfiguration(decoding: changed.span) else { continue }
      readable += 1
      let other = try measurements(
        configuration, app: renamed(ExampleMeasurement.app, configuration.appIDs),
        device: renamed(ExampleMeasurement.device, configuration.deviceIDs))
      #expect(other.integrity != whole.integrity, "byte \(index)")
      #expect(other.device != whole.device, "byte \(index)")
    }
    #expect(readable > 40)
  }

  @Test func `a changed digest of the app changes IM and not DM, one of the device both`() throws {
    let configuration = try ExampleMeasurement.configuration()
    let whole = try measurements(configuration)
    for index in ExampleMeasurement.app.indices {
      let other = try measurements(configuration, app: changed(ExampleMeasurement.app, at: index))
      #expect(other.integrity != whole.integrity)
      #expect(other.device == whole.device)
    }
    for index in ExampleMeasurement.device.indices {
      let other = try measurements(configuration, device: changed(ExampleMeasurement.device, at: index))
      #expect(other.integrity != whole.integrity)
      #expect(other.device != whole.device)
    }
  }

  @Test func `components that are missing, too many, out of order or of the other scope are refused`() throws {
    let configuration = try ExampleMeasurement.configuration()
    let app = ExampleMeasurement.app
    let device = ExampleMeasurement.device
    let wrong: [([Component], [Component])] = [
      (Array(app.dropLast()), device), (app + [app[0]], device), (app.reversed(), device), (app, device.reversed()),
      (device, app), ([], device), (app, []),
    ]
    for (app, device) in wrong {
      #expect(throws: MeasurementFault.componentsDiffer) {
        try measurements(configuration, app: app, device: device)
      }
    }
    for device in [Array(device.dropLast()), device.reversed(), app, []] {
      #expect(throws: MeasurementFault.componentsDiffer) {
        var cryptography = OpenSSLCryptography()
        let alone = try configuration.deviceMeasurement(device: device, using: &cryptography)
        _ = alone.withBytes { $0.count }
      }
    }
  }

  private func measurements(
    _ configuration: MeasurementConfiguration, app: [Component] = ExampleMeasurement.app,
    device: [Component] = ExampleMeasurement.device
  ) throws -> (integrity: [UInt8], device: [UInt8]) {
    var cryptography = OpenSSLCryptography()
    let integrity = try configuration.integrityMeasurement(app: app, device: device, using: &cryptography)
    let deviceAlone = try configuration.deviceMeasurement(device: device, using: &cryptography)
    return (integrity.withBytes { copy($0) }, deviceAlone.withBytes { copy($0) })
  }

  private func copy(_ bytes: Span<UInt8>) -> [UInt8] { bytes.indices.map { bytes[$0] } }

  private func encoded(_ components: [Component]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: components.count)
    for component in components { component.encode(into: &bytes) }
    return bytes
  }

  private func renamed(_ components: [Component], _ ids: [ComponentID]) -> [Component] {
    zip(components, ids).map { Component(id: $1, digest: $0.digest) }
  }

  private func changed(_ components: [Component], at index: Int) -> [Component] {
    var components = components
    var digest = components[index].digest
    digest[31] ^= 1
    components[index] = Component(id: components[index].id, digest: digest)
    return components
  }
}
