import TestSupport

import HoldfastCore

/// The worked example's measurement, as values.
enum ExampleMeasurement {
  static let app = components("app")
  static let device = components("device")
  /// The example has a measurement proof key and no root: this evidence key belongs to the tests.
  static let evidenceKeyBytes = [UInt8](0x40..<0x60)
  static let encoded = WorkedExample.shared.bytes("measurement.configuration")

  static var key: MeasurementProofKey { secret(WorkedExample.shared.bytes("measurement.mpk")) }

  static var evidenceKey: EvidenceKey { secret(evidenceKeyBytes) }

  static func configuration() throws -> MeasurementConfiguration {
    try MeasurementConfiguration(decoding: encoded.span)
  }

  static func evidence() throws -> Evidence {
    try Evidence(
      configuration: configuration(), app: app, device: device, subject: "com.example.lock",
      version: AppVersion(major: 1, minor: 2, patch: 300), properties: ["agent", "debugger"])
  }

  static func evidenceWithStatements() throws -> Evidence {
    try Evidence(
      configuration: configuration(), app: app, device: device, subject: "com.example.lock", version: nil,
      properties: ["agent"],
      statements: EvidenceStatements(
        appProperties: ["beta", "kiosk 7"], systemID: "debian", systemVersion: "12", userProperty: "floor 3"))
  }

  private static func components(_ scope: String) -> [Component] {
    let measurement = WorkedExample.shared.root["measurement"] as! [String: Any]
    let digests = measurement[scope] as! [String: String]
    return digests.keys.sorted().map { Component(id: ComponentID($0)!, digest: fixed(hex(digests[$0]!))) }
  }
}
