/// A search for devices in range, by classic Bluetooth and Low Energy together.
///
/// It takes CAP_NET_ADMIN.
public final class DeviceScan: Sendable {
  private let adapter: UInt16
  private let kinds: UInt8
  private let management: ManagementSocket
  private let cancellation: Signal

  /// Whoever floods the air with addresses gets no more of them into the list.
  static let maximumDeviceCount = 1024

  /// - Throws: ``BluetoothError/adapterDown``, ``BluetoothError/adapterBlocked``, ``BluetoothError/unsupported``.
  public convenience init(_ adapter: Adapter) throws(BluetoothError) {
    try adapter.requirePower()
    try self.init(adapter, management: try ManagementSocket())
  }

  init(_ adapter: Adapter, management: ManagementSocket) throws(BluetoothError) {
    self.adapter = adapter.number
    self.management = management
    // Source: BlueZ, mgmt(7), "Start Discovery": a bit for each kind of address.
    kinds = (adapter.settings.contains(.classic) ? 1 : 0) | (adapter.settings.contains(.lowEnergy) ? 6 : 0)
    do throws(TransportError) { cancellation = try Signal() } catch { throw BluetoothError(error) }
  }

  /// Ends ``run(milliseconds:report:)`` early. From any thread.
  public func cancel() {
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
  public func run(milliseconds: Int, report: (Int) -> Void) throws(BluetoothError) -> [FoundDevice] {
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
