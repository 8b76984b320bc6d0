/// A Low Energy advertisement of a Holdfast device, which keeps the device connectable while this object exists.
///
/// An adapter stops advertising when a host connects. If the adapter can advertise during a link, the advertisement is renewed
/// as soon as a link begins; in any case it is renewed as soon as one ends. If the adapter cannot, a link blocks all other hosts:
/// then a link whose host has not authenticated itself within ``provingMilliseconds`` is ended.
///
/// The kernel removes an advertising instance a minute after its last renewal, so the instance of a killed process does not
/// remain. The advertisement also comes back after a restart of bluetoothd or of the adapter, each of which discards it.
package final class Advertisement: Sendable {
  /// The time after the end of a link, in milliseconds, by which the adapter must be connectable; a later return is reported.
  package static let returnMilliseconds = 200
  /// The pause between two attempts while the adapter refuses, in milliseconds: in the first second, and after it.
  package static let retryMilliseconds = (soon: 50, later: 1000)
  /// The time limit, in milliseconds, for opening a channel on a link that blocks others, and then for a proof on that channel.
  package static let provingMilliseconds = 2000
  static let lifetimeSeconds: UInt16 = 60

  private let thread: OwnedThread

  /// Begins to advertise.
  ///
  /// - Parameters:
  ///   - adapter: the adapter's number; nil selects the first that is powered.
  ///   - psm: the PSM at which the device listens, 0x80 to 0xff.
  ///   - name: the device's name for people; ten bytes of it are sent.
  ///   - standing: a function that returns the progress of the peers on the link from a host.
  ///   - report: a function that is called from another thread; it must not block for long.
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

  package init(
    adapter: UInt16, psm: UInt8, name: String, management: ManagementSocket,
    returnMilliseconds: Int = Advertisement.returnMilliseconds,
    retryMilliseconds: (soon: Int, later: Int) = Advertisement.retryMilliseconds,
    standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding = { _ in .proved },
    report: @escaping @Sendable (AdvertisementNotice) -> Void = { _ in }
  ) throws(BluetoothError) {
    let keeper = try AdvertisingKeeper(
      place: AdvertisingPlace(adapter: adapter, psm: psm, name: name), management: management,
      returnMilliseconds: returnMilliseconds, retryMilliseconds: retryMilliseconds, standing: standing, report: report)
    thread = try OwnedThread { keeper.run(unless: $0) }
  }
}

/// A change in the state of an advertisement.
package enum AdvertisementNotice: Sendable, Equatable {
  /// The device is not connectable ``Advertisement/returnMilliseconds`` after a link ended or the advertisement was lost.
  case unreachable(adapter: UInt16, BluetoothError)
  /// Provers can connect again. The time counts from the end of the link, or from the loss of the advertisement.
  case reachable(adapter: UInt16, afterMilliseconds: Int)
  /// A link was ended, because it blocked all other hosts and its host did not authenticate itself in time.
  case ended(adapter: UInt16, BluetoothAddress)
}

/// The progress of the peers on the link from one host.
package enum LinkStanding: Sendable, Equatable {
  /// No channel is open.
  case absent
  /// A channel is open, and no peer has authenticated itself. The time counts from the opening of the first such channel.
  case connected(milliseconds: Int)
  /// A peer has authenticated itself, or its proof is being checked.
  case proved
}

/// The content of an advertisement, its adapter, and the advertising instance that it occupies at the moment.
struct AdvertisingPlace: Sendable {
  let adapter: UInt16
  private let psm: UInt8
  private let name: String
  /// The present instance; nil before the first ``renew(_:meanwhile:)``.
  private(set) var instance: AdvertisingInstance?

  init(adapter: UInt16, psm: UInt8, name: String) {
    (self.adapter, self.psm, self.name) = (adapter, psm, name)
  }

  /// Makes the adapter advertise for another lifetime.
  ///
  /// The kernel cannot renew an instance without first turning it off, and a host that tries to connect in that moment fails.
  /// Therefore another instance is added, if one is free, before the old one is removed.
  ///
  /// - Throws: the kernel's error, after which possibly nothing is advertised.
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

  /// Renews the instance by replacing its content. An adapter that refuses the change may accept the content as a new instance.
  private func renewInPlace(
    _ instance: AdvertisingInstance, _ management: ManagementSocket, _ meanwhile: (UInt16, ManagementEvent) -> Void
  ) throws(BluetoothError) {
    do throws(BluetoothError) { try add(instance, management, meanwhile) } catch {
      remove(instance, management, meanwhile)
      try add(instance, management, meanwhile)
    }
  }

  /// Stops the advertisement.
  func end(_ management: ManagementSocket) {
    if let instance { remove(instance, management) { _, _ in } }
  }

  private func add(
    _ instance: AdvertisingInstance, _ management: ManagementSocket, _ meanwhile: (UInt16, ManagementEvent) -> Void
  ) throws(BluetoothError) {
    try management.execute(
      AdvertisingPlace.command(adapter: adapter, instance: instance.number, psm: psm, name: name), meanwhile: meanwhile)
  }

  /// Removes an instance. An error does not matter: the kernel has already removed an expired instance.
  private func remove(
    _ instance: AdvertisingInstance, _ management: ManagementSocket, _ meanwhile: (UInt16, ManagementEvent) -> Void
  ) {
    let remove = ManagementCommand(.removeAdvertising, adapter: adapter, [instance.number])
    _ = try? management.execute(remove, meanwhile: meanwhile)
  }

  /// Returns the command that adds the advertisement. Source: BlueZ, mgmt(7), "Add Advertising".
  static func command(adapter: UInt16, instance: UInt8, psm: UInt8, name: String) -> ManagementCommand {
    let connectable: UInt32 = 1 << 0
    let discoverable: UInt32 = 1 << 1
    let data = AdvertisingData.advertisement
    let response = AdvertisingData.scanResponse(psm: psm, name: name)
    var parameters = [instance]
    parameters.append(littleEndian: connectable | discoverable)
    // Zero lets the kernel choose how long each turn among other instances lasts.
    parameters.append(littleEndian: UInt16(0))
    parameters.append(littleEndian: Advertisement.lifetimeSeconds)
    parameters += [UInt8(data.count), UInt8(response.count)] + data + response
    return ManagementCommand(.addAdvertising, adapter: adapter, parameters)
  }
}
