import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastService
import TestSupport
import Testing

/// The makers of devices whose signatures a policy demands.
@Suite struct DeviceMakerTests {
  private static func text(of device: DeviceDescriptor) -> String {
    String(decoding: device.json.compact(), as: UTF8.self)
  }

  private static func body(_ device: DeviceDescriptor) -> JSONValue { .object([("device", device.json)]) }

  private static func body(_ device: DeviceDescriptor, by maker: Maker) throws -> JSONValue {
    try body(device, signed: text(of: device), by: maker)
  }

  private static func body(_ device: DeviceDescriptor, signed text: String, by maker: Maker) throws -> JSONValue {
    let signature = try maker.signature(text)
    var base64: [UInt8] = []
    base64.append(asPaddedBase64: signature.span)
    return .object([
      ("device", device.json), ("signed_descriptor", .string(text)),
      ("signature", .string(String(decoding: base64, as: UTF8.self))),
    ])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a new device needs the signature of a maker in the policy, over its own descriptor`(
    _ database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let (maker, second, stranger) = (try Maker(), try Maker(), try Maker())
    let (device, other) = (try TestFleet.device(2), try TestFleet.device(3))
    var policy = try test.fleet.policy()
    policy.deviceMakers = [maker.point, second.point]
    try test.fleet.setPolicy(policy, by: test.owner)
    let refused: [JSONValue] = [
      Self.body(device), try Self.body(device, by: stranger),
      try Self.body(device, signed: Self.text(of: other), by: maker),
      // The same device with another key.
      try Self.body(device, signed: Self.text(of: TestFleet.device(2, key: 9)), by: maker),
    ]
    for body in refused {
      #expect(throws: AdministrationFault.conflict(.unsignedDevice)) { try test.perform("addDevice", body: body) }
    }
    #expect(throws: AdministrationFault.conflict(.invalidKey)) {
      try test.perform("addDevice", body: Self.body(device, signed: "{}", by: maker))
    }
    #expect(try test.list("listDevices").count == 1)
    _ = try test.perform("addDevice", body: Self.body(device, by: second))
    _ = try test.perform("addDevice", body: Self.body(other, signed: "\(Self.text(of: other))\n", by: maker))
    #expect(try test.list("listDevices").count == 3)
  }

  @Test func `a device from before the policy stays, may get another label, and never another key`() throws {
    let test = try TestFleet(.sqlite)
    let maker = try Maker()
    var policy = try test.fleet.policy()
    policy.deviceMakers = [maker.point]
    try test.fleet.setPolicy(policy, by: test.owner)
    try test.fleet.register(test.device, label: "back door", by: test.owner)
    #expect(try test.list("listDevices").first?["label"]?.text == "back door")
    let again = try TestFleet.device(1, key: 9)
    #expect(throws: AdministrationFault.conflict(.anotherKey)) {
      try test.perform("addDevice", body: Self.body(again, by: maker))
    }
  }

  @Test func `a descriptor and its signature come together`() throws {
    let test = try TestFleet(.sqlite)
    let body = try Self.body(TestFleet.device(2), by: Maker())
    for name in ["signed_descriptor", "signature"] {
      let members = body.members?.filter { $0.0 != name } ?? []
      #expect(throws: AdministrationFault.self) { try test.perform("addDevice", body: .object(members)) }
    }
    #expect(try test.list("listDevices").count == 1)
  }
}
