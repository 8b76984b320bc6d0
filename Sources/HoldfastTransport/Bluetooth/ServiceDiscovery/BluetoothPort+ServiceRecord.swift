extension BluetoothPort {
  /// Reads where our records of an SDP server's answer say that its devices listen, in their order: for each record, ids
  /// and values of attributes by turns.
  ///
  /// A record that is not ours, or names a port that cannot be, is passed over. nil where the bytes are malformed.
  static func listed(in attributeLists: ArraySlice<UInt8>) -> [BluetoothPort]? {
    var reader = ByteReader(attributeLists)
    guard let records = reader.dataElement()?.elements, reader.rest.isEmpty else { return nil }
    var ports: [BluetoothPort] = []
    for record in records {
      guard let attributes = record.elements, attributes.count.isMultiple(of: 2) else { return nil }
      if let port = BluetoothPort(attributes), !ports.contains(port) { ports.append(port) }
    }
    return ports
  }

  private init?(_ attributes: [DataElement]) {
    var isOurs = false
    var port: BluetoothPort?
    for index in stride(from: 0, to: attributes.count, by: 2) {
      let value = attributes[index + 1]
      switch attributes[index].unsigned(UInt16.self) {
      case ServiceRecord.Attribute.serviceClasses: isOurs = value.elements?.contains(where: \.isHoldfastUUID) ?? false
      case ServiceRecord.Attribute.protocols: port = BluetoothPort(protocols: value)
      default: break
      }
    }
    guard isOurs, let port else { return nil }
    self = port
  }

  /// The port that a list of protocols names, from the lowest up: L2CAP with a PSM, or L2CAP and RFCOMM with a channel.
  private init?(protocols list: DataElement) {
    let protocols = (list.elements ?? []).map { $0.elements ?? [] }
    guard let lowest = protocols.first, lowest.first?.isUUID(ServiceRecord.ShortUUID.l2cap) == true else { return nil }
    switch protocols.count {
    case 1:
      guard lowest.count == 2, let psm = lowest[1].unsigned(UInt16.self), BluetoothPort.isDynamic(psm: psm)
      else { return nil }
      self = .l2cap(psm: psm)
    case 2:
      let upper = protocols[1]
      guard upper.count == 2, upper[0].isUUID(ServiceRecord.ShortUUID.rfcomm),
        let channel = upper[1].unsigned(UInt8.self), BluetoothPort.isServer(channel: UInt16(channel))
      else { return nil }
      self = .rfcomm(channel: channel)
    default: return nil
    }
  }
}
