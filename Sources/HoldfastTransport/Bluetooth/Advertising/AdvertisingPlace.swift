/// What is advertised and where, and the instance that the adapter has for it at the moment.
struct AdvertisingPlace: Sendable {
  let adapter: UInt16
  private let psm: UInt8
  private let name: String
  /// nil before the first ``renew(_:meanwhile:)``.
  private(set) var instance: AdvertisingInstance?

  init(adapter: UInt16, psm: UInt8, name: String) {
    (self.adapter, self.psm, self.name) = (adapter, psm, name)
  }

  /// Has the adapter advertise for another lifetime.
  ///
  /// The kernel cannot renew an instance without turning it off first, and a host that wants to connect in this moment finds
  /// nobody. So another instance is added, where one is free, before the old one is removed.
  ///
  /// - Throws: what the kernel answers: then nothing may be advertised.
  mutating func renew(
    _ management: ManagementSocket, meanwhile: (UInt16, ManagementEvent) -> Void
  ) throws(BluetoothError) {
    guard let old = instance else {
      let first = try AdvertisingInstance(of: adapter, management, meanwhile: meanwhile)
      try add(first, management, meanwhile)
      instance = first
      return
    }
    do throws(BluetoothError) {
      let other = try AdvertisingInstance(of: adapter, management, isReplacement: true, meanwhile: meanwhile)
      try add(other, management, meanwhile)
      instance = other
    } catch { return try renewInPlace(old, management, meanwhile) }
    remove(old, management, meanwhile)
  }

  /// An adapter that does not take it as a change may take it as something new.
  private func renewInPlace(
    _ instance: AdvertisingInstance, _ management: ManagementSocket, _ meanwhile: (UInt16, ManagementEvent) -> Void
  ) throws(BluetoothError) {
    do throws(BluetoothError) { try add(instance, management, meanwhile) } catch {
      remove(instance, management, meanwhile)
      try add(instance, management, meanwhile)
    }
  }

  /// Has the adapter advertise no more.
  func end(_ management: ManagementSocket) {
    if let instance { remove(instance, management) { _, _ in } }
  }

  private func add(
    _ instance: AdvertisingInstance, _ management: ManagementSocket, _ meanwhile: (UInt16, ManagementEvent) -> Void
  ) throws(BluetoothError) {
    try management.execute(
      AdvertisingPlace.command(adapter: adapter, instance: instance.number, psm: psm, name: name), meanwhile: meanwhile)
  }

  /// One whose time has run out is gone already.
  private func remove(
    _ instance: AdvertisingInstance, _ management: ManagementSocket, _ meanwhile: (UInt16, ManagementEvent) -> Void
  ) {
    let remove = ManagementCommand(.removeAdvertising, adapter: adapter, [instance.number])
    _ = try? management.execute(remove, meanwhile: meanwhile)
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
    parameters.append(littleEndian: Advertisement.lifetimeSeconds)
    parameters += [UInt8(data.count), UInt8(response.count)] + data + response
    return ManagementCommand(.addAdvertising, adapter: adapter, parameters)
  }
}
