/// Says on the radio, by Low Energy, that a Holdfast device is here, for as long as this object lives.
///
/// The kernel takes an advertising instance away a minute after it was last renewed: one whose process was killed does not
/// stay, and after a restart of bluetoothd or of the adapter, which forget it, it comes back.
public final class Advertisement: Sendable {
  private let thread: ServantThread

  static let lifetimeSeconds: UInt16 = 60
  private static let renewalMilliseconds = 20_000

  /// Begins to advertise.
  ///
  /// - Parameters:
  ///   - adapter: the adapter's number; nil takes the first that is powered.
  ///   - psm: where the device listens, 0x80 to 0xff.
  ///   - name: what people know the device by; ten bytes of it are sent.
  /// - Throws: ``BluetoothError/permissionDenied``, ``BluetoothError/noAdapter``, ``BluetoothError/adapterDown``,
  ///   ``BluetoothError/adapterBlocked``, ``BluetoothError/adapterUnable`` (Low Energy is off),
  ///   ``BluetoothError/noInstance``, ``BluetoothError/unsupported``.
  public convenience init(adapter: UInt16?, psm: UInt8, name: String) throws(BluetoothError) {
    let adapter = try Adapter.chosen(adapter)
    try adapter.requirePower()
    try self.init(adapter: adapter.number, psm: psm, name: name, management: try ManagementSocket())
  }

  init(adapter: UInt16, psm: UInt8, name: String, management: ManagementSocket) throws(BluetoothError) {
    let instance = try AdvertisingInstance(of: adapter, management)
    let add = Advertisement.command(adapter: adapter, instance: instance.number, psm: psm, name: name)
    try management.execute(add)
    thread = try ServantThread { stop in
      while Advertisement.waitForRenewal(management, unless: stop) {
        // An adapter that is off now may be on again the next time.
        _ = try? management.execute(add)
      }
      _ = try? management.execute(ManagementCommand(.removeAdvertising, adapter: adapter, [instance.number]))
    }
  }

  /// Waits until it is time to renew; false once `stop` was raised. Events are dropped, so that they do not keep answers out.
  private static func waitForRenewal(_ management: ManagementSocket, unless stop: Signal) -> Bool {
    let deadline = Deadline(afterMilliseconds: renewalMilliseconds)
    while (try? management.next(by: deadline, unless: stop)) != nil {}
    return deadline.hasPassed
  }

  /// Source: BlueZ, mgmt(7), "Add Advertising".
  static func command(adapter: UInt16, instance: UInt8, psm: UInt8, name: String) -> ManagementCommand {
    let connectable: UInt32 = 1 << 0
    let discoverable: UInt32 = 1 << 1
    let data = AdvertisingData.advertisement
    let response = AdvertisingData.scanResponse(psm: psm, name: name)
    var parameters = [instance]
    parameters.append(littleEndian: connectable | discoverable)
    // How long each of its turns among other instances is, the kernel may say.
    parameters.append(littleEndian: UInt16(0))
    parameters.append(littleEndian: lifetimeSeconds)
    parameters += [UInt8(data.count), UInt8(response.count)] + data + response
    return ManagementCommand(.addAdvertising, adapter: adapter, parameters)
  }
}
