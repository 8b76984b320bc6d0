import HoldfastTransport

/// The vectors `ServiceRecord`: the SDP record that a device registers for a port. Source: docs/protocol.md, Bluetooth.
struct ServiceRecordVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let port = try BluetoothPort(test.node.member("transport"), test.node.member("number"))
    let name = try test.node.member("name").text()
    let record = try test.bytes("record")
    return ServiceRecord.bytes(port, name: name) == record ? .accepted : .refused("record differs")
  }
}

/// The vectors `ServiceAnswer`: the attribute lists of an SDP server, and the ports of the Holdfast devices in them.
///
/// Source: docs/protocol.md, Bluetooth; Bluetooth Core 5.4, volume 3 part B, section 4.7.2.
struct ServiceAnswerVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let answer = try test.bytes("answer")
    var expected: [BluetoothPort] = []
    for pair in test.result == .invalid ? [] : try test.node.member("ports").elements() {
      let parts = try pair.elements()
      guard parts.count == 2 else { throw pair.fault(.wrongValue) }
      expected.append(try BluetoothPort(parts[0], parts[1]))
    }
    guard let ports = BluetoothPort.listed(in: answer[...]) else { return .refused("malformed") }
    guard !ports.isEmpty else { return .refused("no port") }
    return expected.isEmpty || ports == expected ? .accepted : .differs("ports")
  }
}

extension BluetoothPort {
  /// Reads a port from the name of its transport and its number.
  fileprivate init(_ transport: VectorNode, _ number: VectorNode) throws(VectorFault) {
    switch try transport.text() {
    case "l2cap":
      guard let psm = UInt16(exactly: try number.number()) else { throw number.fault(.wrongValue) }
      self = .l2cap(psm: psm)
    case "rfcomm":
      guard let channel = UInt8(exactly: try number.number()) else { throw number.fault(.wrongValue) }
      self = .rfcomm(channel: channel)
    default: throw transport.fault(.wrongValue)
    }
  }
}
