import HoldfastLinux

/// A search for Bluetooth peers in range, over classic Bluetooth and Low Energy.
///
/// It needs CAP_NET_ADMIN.
package final class DeviceScan: Sendable {
  private let adapter: UInt16
  private let kinds: UInt8
  private let management: ManagementSocket
  private let cancellation: WakeUp

  /// The maximum number of peers in the list, against a sender that floods the air with addresses.
  package static let maximumDeviceCount = 1024

  /// Prepares a search on `adapter`.
  ///
  /// - Throws: ``BluetoothError/adapterDown``, ``BluetoothError/adapterBlocked``, ``BluetoothError/unsupported``.
  package convenience init(_ adapter: Adapter) throws(BluetoothError) {
    try adapter.requirePower()
    try self.init(adapter, management: try ManagementSocket())
  }

  package init(_ adapter: Adapter, management: ManagementSocket) throws(BluetoothError) {
    self.adapter = adapter.number
    self.management = management
    // Source: BlueZ, mgmt(7), "Start Discovery": one bit for each kind of address.
    kinds = (adapter.settings.contains(.classic) ? 1 : 0) | (adapter.settings.contains(.lowEnergy) ? 6 : 0)
    do throws(SystemError) { cancellation = try WakeUp() } catch { throw .other(errno: error.number) }
  }

  /// Ends ``run(milliseconds:report:)`` early. It may be called from any thread.
  package func cancel() {
    cancellation.raise()
  }

  /// Searches for `milliseconds`.
  ///
  /// - Parameters:
  ///   - milliseconds: the duration of the whole search: over Low Energy first, for about five seconds, then over classic
  ///     Bluetooth.
  ///   - report: a function that is called with the number of peers found, each time it increases.
  /// - Returns: the peers in the order in which they were found; after ``cancel()``, those found so far.
  /// - Throws: ``BluetoothError/permissionDenied``, ``BluetoothError/busy`` if another process is searching,
  ///   ``BluetoothError/adapterDown``, ``BluetoothError/noAdapter``, ``BluetoothError/timedOut``.
  package func run(milliseconds: Int, report: (Int) -> Void) throws(BluetoothError) -> [FoundPeer] {
    let deadline = Deadline(afterMilliseconds: milliseconds)
    var places: [RemoteDevice: Int] = [:]
    var devices: [FoundPeer] = []
    try start()
    // A search that the kernel has already ended cannot be stopped; the error does not matter.
    defer { _ = try? management.execute(ManagementCommand(.stopDiscovery, adapter: adapter, [kinds])) }
    while let (number, event) = try management.next(by: deadline, unless: cancellation) {
      guard number == adapter else { continue }
      switch event {
      case .deviceFound(let found):
        if found.wantsName { try askForName(of: found.device) }
        if let place = places[found.device] {
          devices[place].merge(found)
        } else if devices.count < DeviceScan.maximumDeviceCount {
          places[found.device] = devices.count
          devices.append(FoundPeer(found))
          report(devices.count)
        }
      // The kernel ends a search after about ten seconds.
      case .discovering(false): try start()
      default: break
      }
    }
    return devices
  }

  private func start() throws(BluetoothError) {
    try management.execute(ManagementCommand(.startDiscovery, adapter: adapter, [kinds]))
  }

  /// Asks the kernel to find out a peer's name, which arrives in a later report.
  private func askForName(of device: RemoteDevice) throws(BluetoothError) {
    try management.send(ManagementCommand(.confirmName, adapter: adapter, device.bytes + [0]))
  }
}

/// A Bluetooth peer in range, and the information that it advertises.
package struct FoundPeer: Sendable, Equatable {
  /// The peer's address, by which its reports are merged.
  package let device: RemoteDevice
  /// The strength of its last signal in dBm; nil if unknown.
  package private(set) var signalStrength: Int8?
  /// Whether it accepts connections.
  package private(set) var isConnectable: Bool
  private var data: AdvertisingData

  /// The name that it advertises, unfiltered: it must be made printable before a terminal shows it.
  package var name: String? { data.name }
  /// Whether it advertises the Holdfast service.
  package var namesService: Bool { data.namesService }
  /// Whether it advertises the complete list of its services, and the Holdfast service is not in the list.
  package var excludesService: Bool { data.namesAllServices && !data.namesService }
  /// The LE PSMs at which it listens, each from 0x80 to 0xff; several if its host runs several Holdfast devices.
  package private(set) var psms: [UInt8] = []

  package init(_ report: DeviceReport) {
    device = report.device
    signalStrength = report.signalStrength
    isConnectable = report.isConnectable
    data = AdvertisingData(report.data) ?? AdvertisingData([])!
    if let psm = data.psm { psms.append(psm) }
  }

  /// Adds the information of a later report about the same peer.
  package mutating func merge(_ report: DeviceReport) {
    signalStrength = report.signalStrength ?? signalStrength
    isConnectable = isConnectable || report.isConnectable
    guard let more = AdvertisingData(report.data) else { return }
    data.merge(more)
    if let psm = more.psm, !psms.contains(psm) { psms.append(psm) }
  }
}

extension FoundPeer {
  /// Returns the endpoints at which the peer's Holdfast devices listen; none if it has no such device.
  ///
  /// A Low Energy peer has already advertised them. A classic Bluetooth peer is asked by SDP, unless its complete list of
  /// services does not contain ours.
  /// - Parameters:
  ///   - adapter: the local adapter for the query, which also becomes part of the endpoints; nil lets the system choose.
  ///   - deadline: the time by which the peer must answer.
  /// - Throws: the errors of ``ServiceDiscovery/query(_:adapter:by:)``.
  package func endpoints(adapter: UInt16?, by deadline: Deadline) throws(TransportError) -> [Endpoint] {
    try ports(adapter: adapter, by: deadline).map {
      Endpoint(device.address, $0, adapter: adapter)
    }
  }

  private func ports(adapter: UInt16?, by deadline: Deadline) throws(TransportError) -> [BluetoothPort] {
    switch device.kind {
    case .classic:
      guard !excludesService else { return [] }
      return try ServiceDiscovery.query(
        device.address, adapter: adapter, by: deadline)
    case .lowEnergyPublic, .lowEnergyRandom:
      guard namesService else { return [] }
      return psms.map { .lowEnergy(psm: UInt16($0), device.kind == .lowEnergyPublic ? .public : .random) }
    }
  }
}
