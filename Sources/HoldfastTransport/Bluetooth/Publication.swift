/// What lets peers find where a device listens: a record of SDP, or an advertisement of Low Energy. It ends with this object.
public enum Publication: Sendable {
  case record(ServiceRecord)
  case advertisement(Advertisement)

  /// Makes known that a device listens at `endpoint`, whose port is filled in; nil where nobody is looking for such.
  ///
  /// - Parameters:
  ///   - name: what people know the device by.
  ///   - standing: how far the peers of a host have come that is linked by Low Energy.
  ///   - report: called from another thread with what becomes of an advertisement.
  /// - Throws: what ``ServiceRecord/init(_:name:)`` and ``Advertisement/init(adapter:psm:name:standing:report:)`` throw.
  public init?(
    of endpoint: Endpoint, name: String, standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding,
    report: @escaping @Sendable (AdvertisementNotice) -> Void
  ) throws(BluetoothError) {
    guard case .bluetooth(_, let port) = endpoint.address, !port.isOpen else { return nil }
    switch port {
    case .l2cap, .rfcomm:
      self = .record(try ServiceRecord(port, name: name))
    case .lowEnergy(let psm, _):
      self = .advertisement(
        try Advertisement(
          adapter: endpoint.adapter, psm: UInt8(truncatingIfNeeded: psm), name: name, standing: standing,
          report: report))
    }
  }
}
