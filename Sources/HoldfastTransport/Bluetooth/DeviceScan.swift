import HoldfastLinux

/// A search for devices in range, by classic Bluetooth and Low Energy together.
///
/// It takes CAP_NET_ADMIN.
package final class DeviceScan: Sendable {
  private let adapter: UInt16
  private let kinds: UInt8
  private let management: ManagementSocket
  private let cancellation: WakeUp

  /// Whoever floods the air with addresses gets no more of them into the list.
  static let maximumDeviceCount = 1024

  /// - Throws: ``BluetoothError/adapterDown``, ``BluetoothError/adapterBlocked``, ``BluetoothError/unsupported``.
  package convenience init(_ adapter: Adapter) throws(BluetoothError) {
    try adapter.requirePower()
    try self.init(adapter, management: try ManagementSocket())
  }

  init(_ adapter: Adapter, management: ManagementSocket) throws(BluetoothError) {
    self.adapter = adapter.number
    self.management = management
    // Source: BlueZ, mgmt(7), "Start Discovery": a bit for each kind of address.
    kinds = (adapter.settings.contains(.classic) ? 1 : 0) | (adapter.settings.contains(.lowEnergy) ? 6 : 0)
    do throws(SystemError) { cancellation = try WakeUp() } catch { throw .other(errno: error.number) }
  }

  /// Ends ``run(milliseconds:report:)`` early. From any thread.
  package func cancel() {
    cancellation.raise()
  }

  /// Searches for so long.
  ///
  /// - Parameters:
  ///   - milliseconds: the whole of the search: by Low Energy first, for some five seconds, then by classic Bluetooth.
  ///   - report: told how many devices were found, each time that it is one more.
  /// - Returns: what was found, in that order; what was found so far after ``cancel()``.
  /// - Throws: ``BluetoothError/permissionDenied``, ``BluetoothError/busy`` where somebody else searches,
  ///   ``BluetoothError/adapterDown``, ``BluetoothError/noAdapter``, ``BluetoothError/timedOut``.
  package func run(milliseconds: Int, report: (Int) -> Void) throws(BluetoothError) -> [FoundDevice] {
    let deadline = Deadline(afterMilliseconds: milliseconds)
    var places: [RemoteDevice: Int] = [:]
    var devices: [FoundDevice] = []
    try start()
    // One that the kernel has ended by itself cannot be stopped, and need not be.
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
          devices.append(FoundDevice(found))
          report(devices.count)
        }
      // The kernel ends a search after some ten seconds.
      case .discovering(false): try start()
      default: break
      }
    }
    return devices
  }

  private func start() throws(BluetoothError) {
    try management.execute(ManagementCommand(.startDiscovery, adapter: adapter, [kinds]))
  }

  /// Has the kernel find out a name; it comes as another report.
  private func askForName(of device: RemoteDevice) throws(BluetoothError) {
    try management.send(ManagementCommand(.confirmName, adapter: adapter, device.bytes + [0]))
  }
}

/// A device in range, and what it said of itself.
package struct FoundDevice: Sendable, Equatable {
  /// Its address, by which reports of it are put together.
  package let device: RemoteDevice
  /// The strength of its last signal in dBm; nil where it is not known.
  package private(set) var signalStrength: Int8?
  /// Whether it lets itself be connected to.
  package private(set) var isConnectable: Bool
  private var data: AdvertisingData

  /// What it calls itself, as it wrote it: for a terminal it has to be made printable.
  package var name: String? { data.name }
  /// Whether it says that it is a Holdfast device.
  package var namesService: Bool { data.namesService }
  /// Whether it says what services it has, and ours is not among them.
  package var excludesService: Bool { data.namesAllServices && !data.namesService }
  /// Where it listens by Low Energy, each from 0x80 to 0xff; more than one where several Holdfast devices are on one host.
  package private(set) var psms: [UInt8] = []

  init(_ report: DeviceReport) {
    device = report.device
    signalStrength = report.signalStrength
    isConnectable = report.isConnectable
    data = AdvertisingData(report.data) ?? AdvertisingData([])!
    if let psm = data.psm { psms.append(psm) }
  }

  /// Adds what a later report of the same device says.
  mutating func merge(_ report: DeviceReport) {
    signalStrength = report.signalStrength ?? signalStrength
    isConnectable = isConnectable || report.isConnectable
    guard let more = AdvertisingData(report.data) else { return }
    data.merge(more)
    if let psm = more.psm, !psms.contains(psm) { psms.append(psm) }
  }
}

extension FoundDevice {
  /// Where the device says that its Holdfast devices listen; nowhere where it has none.
  ///
  /// By Low Energy it has said so already. By classic Bluetooth it is asked by SDP, unless it named all its services.
  /// - Parameters:
  ///   - adapter: the local adapter to ask over, and to put into the endpoints; nil leaves the choice to the system.
  ///   - deadline: until when it may answer.
  /// - Throws: what ``ServiceDiscovery/query(_:adapter:by:)`` throws.
  package func endpoints(adapter: UInt16?, by deadline: Deadline) throws(TransportError) -> [Endpoint] {
    try ports(adapter: adapter, by: deadline).map {
      Endpoint(address: .bluetooth(device.address, $0), adapter: adapter)
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
