import Glibc
import HoldfastLinux

/// The worker of an ``Advertisement``: it keeps an adapter advertising, and ends links that block other hosts for too long.
///
/// Only one thread at a time uses it: the thread that creates it, then the thread that runs it.
final class AdvertisingKeeper: @unchecked Sendable {
  private static let renewalMilliseconds = 20_000
  /// The interval at which links that block other hosts are examined.
  private static let watchMilliseconds = 100

  private let management: ManagementSocket
  private let returnMilliseconds: Int
  private let retryMilliseconds: (soon: Int, later: Int)
  private let standing: @Sendable (BluetoothAddress) -> LinkStanding
  private let report: @Sendable (AdvertisementNotice) -> Void
  private var place: AdvertisingPlace
  /// The Low Energy links that other hosts have opened.
  private var links = LowEnergyLinks()
  private var isPowered = true
  /// The reason why the adapter does not advertise; nil while it does.
  private var refusal: BluetoothError?
  /// Whether the adapter accepted the advertisement after the last link began. The end of a link then changes nothing.
  private var outlastsLinks = true
  /// The time, in monotonic milliseconds, since when the adapter should be connectable again and is not.
  ///
  /// It is nil while the adapter is connectable, and while a link is up that blocks others.
  private var missedSince: UInt64?
  private var isMissReported = false
  private var renewal = Deadline(afterMilliseconds: renewalMilliseconds)
  private var watch = Deadline.never

  /// Begins to advertise.
  ///
  /// If the adapter refuses, another attempt follows if a link is up that may be the reason, or if no instance is free: the
  /// instances of a killed process expire within a minute.
  /// - Throws: the kernel's error in any other case.
  init(
    place: AdvertisingPlace, management: ManagementSocket, returnMilliseconds: Int,
    retryMilliseconds: (soon: Int, later: Int),
    standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding,
    report: @escaping @Sendable (AdvertisementNotice) -> Void
  ) throws(BluetoothError) {
    (self.place, self.management, self.standing, self.report) = (place, management, standing, report)
    (self.returnMilliseconds, self.retryMilliseconds) = (returnMilliseconds, retryMilliseconds)
    do throws(BluetoothError) { try renew() } catch {
      let hasLinks = (try? readLinks(addingNew: true)) != nil && !links.isEmpty
      guard hasLinks || error == .noInstance else { throw error }
      if error == .noInstance { miss(since: monotonicMilliseconds()) }
      refuse(error)
    }
  }

  /// Works until `stop` is raised, then has the adapter advertise no more.
  func run(unless stop: WakeUp) {
    while true {
      let deadline = min(renewal, watch)
      do throws(BluetoothError) {
        if let (adapter, event) = try management.next(by: deadline, unless: stop) {
          take(adapter, event)
        } else if !deadline.hasPassed {
          break
        }
      } catch {
        // A socket that fails at once must not keep a processor busy.
        let pause = Deadline(afterMilliseconds: AdvertisingKeeper.watchMilliseconds)
        guard !stop.wait(until: pause) else { break }
      }
      if renewal.hasPassed { tryToRenew() }
      if let refusal { mind(refusal) }
    }
    place.end(management)
  }

  /// Records the changes that an event reports. The caller acts on them afterwards.
  private func take(_ adapter: UInt16, _ event: ManagementEvent) {
    guard adapter == place.adapter else { return }
    let now = monotonicMilliseconds()
    switch event {
    case .linkBegun(let device, isOurs: false) where device.isLowEnergy:
      links.begin(device, at: now)
      outlastsLinks = false
      // A host was able to connect, so the adapter was connectable.
      endMiss(at: now)
      renewal = Deadline(afterMilliseconds: 0)
    case .linkEnded(let device) where device.isLowEnergy:
      links.end(device)
      if !outlastsLinks || refusal != nil { miss(since: now) }
    case .identified(let random, let device): links.rename(random, to: device)
    case .advertisingRemoved(place.instance?.number): miss(since: now)
    case .settings(let settings):
      let wasPowered = isPowered
      isPowered = settings.contains(.powered)
      if wasPowered != isPowered { miss(since: now) }
    default: break
    }
  }

  /// Records that the adapter may have stopped advertising, and schedules a renewal at once.
  private func miss(since now: UInt64) {
    missedSince = missedSince ?? now
    renewal = Deadline(afterMilliseconds: 0)
  }

  private func tryToRenew() {
    do throws(BluetoothError) { try renew() } catch { refuse(error) }
  }

  private func renew() throws(BluetoothError) {
    renewal = Deadline(afterMilliseconds: AdvertisingKeeper.renewalMilliseconds)
    outlastsLinks = true
    var meanwhile: [(UInt16, ManagementEvent)] = []
    var failure: BluetoothError?
    do throws(BluetoothError) { try place.renew(management) { meanwhile.append(($0, $1)) } } catch { failure = error }
    // The events set the time of the next renewal.
    for (adapter, event) in meanwhile { take(adapter, event) }
    if let failure { throw failure }
    (refusal, watch) = (nil, .never)
    if !renewal.hasPassed { endMiss(at: monotonicMilliseconds()) }
  }

  private func endMiss(at now: UInt64) {
    guard let since = missedSince else { return }
    let milliseconds = Int(clamping: now - since)
    if isMissReported || milliseconds > returnMilliseconds {
      report(.reachable(adapter: place.adapter, afterMilliseconds: milliseconds))
    }
    (missedSince, isMissReported) = (nil, false)
  }

  private func refuse(_ error: BluetoothError) {
    refusal = isPowered ? error : .adapterDown
    watch = Deadline(afterMilliseconds: 0)
    let isNew = monotonicMilliseconds() - (missedSince ?? 0) < 1000
    let delay = isNew ? retryMilliseconds.soon : retryMilliseconds.later
    renewal = min(renewal, Deadline(afterMilliseconds: delay))
  }

  /// Reports that the adapter refuses to advertise, and ends the links that block other hosts.
  private func mind(_ refusal: BluetoothError) {
    guard watch.hasPassed else { return }
    let now = monotonicMilliseconds()
    if let missedSince, !isMissReported, now - missedSince >= returnMilliseconds {
      isMissReported = true
      report(.unreachable(adapter: place.adapter, refusal))
    }
    let isWaiting = !links.isEmpty || missedSince != nil && !isMissReported
    watch = isWaiting ? Deadline(afterMilliseconds: AdvertisingKeeper.watchMilliseconds) : .never
    let overdue = links.overdue(at: now, standing: standing)
    guard !overdue.isEmpty else { return }
    try? readLinks(addingNew: false)
    for device in overdue where links.contains(device) {
      let end = ManagementCommand(.disconnect, adapter: place.adapter, device.bytes)
      do throws(BluetoothError) {
        try management.execute(end) { take($0, $1) }
        // The event of its end may arrive a moment later. If it does not, the link is ended again.
        if links.contains(device) { links.begin(device, at: now) }
        report(.ended(adapter: place.adapter, device.address))
      } catch {
        // The link has ended by itself, or the next pass tries again.
      }
    }
  }

  /// Updates `links` to the links that are up at the moment, because an event may have been lost.
  private func readLinks(addingNew: Bool) throws(BluetoothError) {
    let list = try management.execute(ManagementCommand(.readConnections, adapter: place.adapter)) { take($0, $1) }
    var reader = ByteReader(list)
    guard let count = reader.littleEndian(UInt16.self) else { throw .malformed }
    var devices: [RemoteDevice] = []
    for _ in 0..<count {
      guard let device = RemoteDevice(&reader) else { throw .malformed }
      if device.isLowEnergy { devices.append(device) }
    }
    links.keep(devices, at: monotonicMilliseconds(), addingNew: addingNew)
  }
}

/// The links that other hosts have opened, and the time since when each has proved nothing.
package struct LowEnergyLinks {
  /// The time in monotonic milliseconds at which a link began, or was last seen with a proof.
  private var unprovedSince: [RemoteDevice: UInt64] = [:]

  package init() {}

  package var isEmpty: Bool { unprovedSince.isEmpty }

  package func contains(_ device: RemoteDevice) -> Bool { unprovedSince[device] != nil }

  package mutating func begin(_ device: RemoteDevice, at now: UInt64) { unprovedSince[device] = now }

  package mutating func end(_ device: RemoteDevice) { unprovedSince[device] = nil }

  /// Changes the address of a link. The kernel uses the host's identity address as soon as it knows it.
  package mutating func rename(_ random: BluetoothAddress, to device: RemoteDevice) {
    guard let since = unprovedSince.removeValue(forKey: RemoteDevice(address: random, kind: .lowEnergyRandom)) else {
      return
    }
    unprovedSince[device] = since
  }

  /// Drops all links except `devices`, and adds those that are missing if `addingNew` is true.
  package mutating func keep(_ devices: [RemoteDevice], at now: UInt64, addingNew: Bool) {
    unprovedSince = unprovedSince.filter { devices.contains($0.key) }
    if addingNew { for device in devices where !contains(device) { begin(device, at: now) } }
  }

  /// Returns the links whose time for a proof is over. A link on which a channel was opened in time has the same time again.
  package mutating func overdue(
    at now: UInt64, standing: (BluetoothAddress) -> LinkStanding
  ) -> [RemoteDevice] {
    let limit = Advertisement.provingMilliseconds
    return unprovedSince.keys.filter { device in
      let milliseconds = Int(clamping: now - (unprovedSince[device] ?? now))
      switch standing(device.address) {
      case .proved:
        unprovedSince[device] = now
        return false
      case .absent: return milliseconds >= limit
      case .connected(let open): return open >= limit || milliseconds >= 2 * limit
      }
    }
  }
}
