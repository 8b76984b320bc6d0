import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

@Suite struct MeasurementConfigurationTests {
  let salt: ConfigurationSalt = fixed([UInt8](repeating: 7, count: 32))
  let mpkID: KeyID = fixed([1, 2, 3, 4, 5, 6, 7, 8])

  @Test func `the worked example's configuration is read and written`() throws {
    let example = WorkedExample.shared
    let configuration = try ExampleMeasurement.configuration()
    #expect(configuration.salt == fixed(example.bytes("measurement.salt")))
    #expect(configuration.appIDs == ExampleMeasurement.app.map(\.id))
    #expect(configuration.deviceIDs == ExampleMeasurement.device.map(\.id))
    #expect(configuration.created == 0x6ab1_3b80)
    #expect(configuration.encoded() == ExampleMeasurement.encoded)
  }

  @Test func `every prefix and every longer text of a configuration is refused`() {
    let bytes = ExampleMeasurement.encoded
    for count in 0..<bytes.count {
      #expect(throws: EncodingFault.self) {
        try MeasurementConfiguration(decoding: bytes.span.extracting(first: count))
      }
    }
    let longer = bytes + [0]
    #expect(throws: EncodingFault.malformed) { try MeasurementConfiguration(decoding: longer.span) }
  }

  @Test func `a configuration that can be read is written back as the same bytes`() throws {
    let bytes = ExampleMeasurement.encoded
    for index in bytes.indices {
      for change: UInt8 in [1, 0x20, 0x80, 0xff] {
        var changed = bytes
        changed[index] ^= change
        guard let configuration = try? MeasurementConfiguration(decoding: changed.span) else { continue }
        #expect(configuration.encoded() == changed)
      }
    }
  }

  @Test(arguments: [
    [[], ["b"]], [["a"], []], [["b", "a"], ["c"]], [["a", "a"], ["c"]], [["a"], ["a"]], [["a", "b"], ["b", "c"]],
    [[""], ["c"]], [["a b"], ["c"]], [["ä"], ["c"]], [["a\u{7f}"], ["c"]],
  ])
  func `ids that are missing, unsorted, repeated or not printable ASCII are unexpected`(ids: [[String]]) {
    #expect(throws: EncodingFault.unexpected) { try configuration(ids[0], ids[1]) }
  }

  @Test func `ids are sorted by their bytes, not by their lengths`() throws {
    #expect(try configuration(["a.long", "b"], ["A", "a"]).appIDs.count == 2)
  }

  @Test func `there are at most 64 ids in both lists`() throws {
    let names = (10..<75).map { "c\($0)" }
    #expect(try configuration(Array(names[..<63]), ["d"]).appIDs.count == 63)
    #expect(throws: EncodingFault.tooLong) { try configuration(Array(names[..<64]), ["d"]) }
    #expect(throws: EncodingFault.tooLong) { try configuration(["a"], names) }
  }

  @Test func `a list that claims to be huge is refused before anything is read`() {
    let start = hex("a60101025820000000000000000000000000000000000000000000000000000000000000000003480000000000000000")
    let bytes = start + [0x04, 0x9b, 0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]
    #expect(throws: EncodingFault.tooLong) { try MeasurementConfiguration(decoding: bytes.span) }
  }

  @Test func `another version is unexpected`() {
    var bytes = ExampleMeasurement.encoded
    bytes[2] = 2
    #expect(throws: EncodingFault.unexpected) { try MeasurementConfiguration(decoding: bytes.span) }
  }

  @Test(arguments: [1, 2, 3] as [UInt8])
  func `a policy is one more label of version 2, and changes both measurements`(policy: UInt8) throws {
    let plain = try configuration(["a"], ["b"])
    let permissive = try MeasurementConfiguration(
      salt: salt, mpkID: mpkID, appIDs: ["a"], deviceIDs: ["b"], created: plain.created,
      policy: MeasurementPolicy(rawValue: policy))
    let bytes = permissive.encoded()
    #expect(bytes[..<3] == [0xa7, 1, 2])
    #expect(bytes.suffix(2) == [7, policy])
    #expect(bytes[3..<(bytes.count - 2)] == plain.encoded()[3...])
    #expect(try MeasurementConfiguration(decoding: bytes.span) == permissive)
    var cryptography = OpenSSLCryptography()
    let digests = [try plain.digest(using: &cryptography), try permissive.digest(using: &cryptography)]
    #expect(digests[0] != digests[1])
  }

  @Test(arguments: [0, 4, 5, 0x18] as [UInt8]) func `a policy without a bit, or with an unknown one, is refused`(
    policy: UInt8
  ) throws {
    var bytes = try MeasurementConfiguration(
      salt: salt, mpkID: mpkID, appIDs: ["a"], deviceIDs: ["b"], created: 0, policy: .knownCode
    ).encoded()
    bytes[bytes.count - 1] = policy
    #expect(throws: EncodingFault.self) { try MeasurementConfiguration(decoding: bytes.span) }
    #expect(throws: EncodingFault.unexpected) {
      try MeasurementConfiguration(
        salt: salt, mpkID: mpkID, appIDs: ["a"], deviceIDs: ["b"], created: 0, policy: MeasurementPolicy(rawValue: 4))
    }
  }

  @Test func `a time beyond 2^53 - 1 is unexpected`() {
    #expect(throws: EncodingFault.unexpected) {
      try MeasurementConfiguration(
        salt: salt, mpkID: mpkID, appIDs: ["a"], deviceIDs: ["b"], created: maximumInteger + 1)
    }
  }

  private func configuration(_ app: [String], _ device: [String]) throws -> MeasurementConfiguration {
    try MeasurementConfiguration(
      salt: salt, mpkID: mpkID, appIDs: app.map { ComponentID($0)! }, deviceIDs: device.map { ComponentID($0)! },
      created: 0)
  }
}
