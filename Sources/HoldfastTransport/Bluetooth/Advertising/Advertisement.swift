/// Says on the radio, by Low Energy, that a Holdfast device is here, and keeps it connectable, for as long as this object lives.
///
/// An adapter stops advertising when somebody connects. So the advertisement is renewed as soon as a link begins, where the
/// adapter can advertise while links are up, and again as soon as one ends. Where it cannot, a link keeps everybody else out:
/// then one whose host has not proved itself within ``provingMilliseconds`` is ended.
///
/// The kernel takes an advertising instance away a minute after it was last renewed: one whose process was killed does not
/// stay, and after a restart of bluetoothd or of the adapter, which forget it, it comes back.
package final class Advertisement: Sendable {
  /// How long after the end of a link the adapter may take to be connectable again before that is reported.
  package static let returnMilliseconds = 200
  /// How long a link that keeps others out may last before a channel is open on it, and a channel before it has proved itself.
  package static let provingMilliseconds = 2000
  static let lifetimeSeconds: UInt16 = 60

  private let thread: ServantThread

  /// Begins to advertise.
  ///
  /// - Parameters:
  ///   - adapter: the adapter's number; nil takes the first that is powered.
  ///   - psm: where the device listens, 0x80 to 0xff.
  ///   - name: what people know the device by; ten bytes of it are sent.
  ///   - standing: how far the peers of a linked host have come.
  ///   - report: called from another thread; it must not block for long.
  /// - Throws: ``BluetoothError/permissionDenied``, ``BluetoothError/noAdapter``, ``BluetoothError/adapterDown``,
  ///   ``BluetoothError/adapterBlocked``, ``BluetoothError/adapterUnable`` (Low Energy is off),
  ///   ``BluetoothError/noInstance``, ``BluetoothError/unsupported``.
  package convenience init(
    adapter: UInt16?, psm: UInt8, name: String, standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding,
    report: @escaping @Sendable (AdvertisementNotice) -> Void
  ) throws(BluetoothError) {
    let adapter = try Adapter.chosen(adapter)
    try adapter.requirePower()
    try self.init(
      adapter: adapter.number, psm: psm, name: name, management: try ManagementSocket(), standing: standing,
      report: report)
  }

  init(
    adapter: UInt16, psm: UInt8, name: String, management: ManagementSocket,
    standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding = { _ in .proved },
    report: @escaping @Sendable (AdvertisementNotice) -> Void = { _ in }
  ) throws(BluetoothError) {
    let keeper = try AdvertisingKeeper(
      place: AdvertisingPlace(adapter: adapter, psm: psm, name: name), management: management, standing: standing,
      report: report)
    thread = try ServantThread { keeper.run(unless: $0) }
  }
}

/// What becomes of an advertisement.
package enum AdvertisementNotice: Sendable, Equatable {
  /// A link has ended, or the adapter lost what it advertised, and ``Advertisement/returnMilliseconds`` later nobody can connect.
  case unreachable(adapter: UInt16, BluetoothError)
  /// Provers can connect again, so long after a link ended, or after the adapter lost what it advertised.
  case reachable(adapter: UInt16, afterMilliseconds: Int)
  /// A link was ended: it kept everybody else out, and its host did not prove itself in time.
  case ended(adapter: UInt16, BluetoothAddress)
}

/// How far the peers of a linked host have come.
package enum LinkStanding: Sendable, Equatable {
  /// No channel is open.
  case absent
  /// A channel is open, the first of them since so long, and none has proved itself.
  case connected(milliseconds: Int)
  /// A peer has proved itself, or its proof is being judged.
  case proved
}

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
