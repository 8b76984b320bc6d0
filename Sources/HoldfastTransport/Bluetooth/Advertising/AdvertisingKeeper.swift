import Glibc
import HoldfastLinux

/// Keeps an adapter advertising, and sees to it that no link keeps others out for long: the work of an ``Advertisement``.
///
/// One thread uses it at a time: the one that makes it, then the one that runs it.
final class AdvertisingKeeper: @unchecked Sendable {
  private static let renewalMilliseconds = 20_000
  /// Between two tries while the adapter refuses: in the first second, and after it.
  private static let retryMilliseconds = (soon: 50, later: 1000)
  /// How often the links are looked at while they keep others out.
  private static let watchMilliseconds = 100

  private let management: ManagementSocket
  private let standing: @Sendable (BluetoothAddress) -> LinkStanding
  private let report: @Sendable (AdvertisementNotice) -> Void
  private var place: AdvertisingPlace
  /// The links by Low Energy that other hosts have begun.
  private var links = LowEnergyLinks()
  private var isPowered = true
  /// Why the adapter does not advertise; nil while it does.
  private var refusal: BluetoothError?
  /// Whether the adapter was told to advertise after the last link began, and did: the end of a link changes nothing then.
  private var outlastsLinks = true
  /// Since when it should be connectable again and is not; nil while it is, and while a link is up that keeps others out.
  private var missedSince: UInt64?
  private var isMissReported = false
  private var renewal = Deadline(afterMilliseconds: renewalMilliseconds)
  private var watch = Deadline.never

  /// Begins to advertise.
  ///
  /// An adapter that refuses is tried again where a link is up that may be the reason, and where it has no free instance: those of a
  /// process that was killed go within a minute.
  /// - Throws: what the kernel answers otherwise.
  init(
    place: AdvertisingPlace, management: ManagementSocket,
    standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding,
    report: @escaping @Sendable (AdvertisementNotice) -> Void
  ) throws(BluetoothError) {
    (self.place, self.management, self.standing, self.report) = (place, management, standing, report)
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

  /// Takes what an event changes; what is to be done then is done after it.
  private func take(_ adapter: UInt16, _ event: ManagementEvent) {
    guard adapter == place.adapter else { return }
    let now = monotonicMilliseconds()
    switch event {
    case .linkBegun(let device, isOurs: false) where device.isLowEnergy:
      links.begin(device, at: now)
      outlastsLinks = false
      // Somebody could connect, then.
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

  /// The adapter may not advertise any more: that is to be mended at once.
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
    // They set the next renewal.
    for (adapter, event) in meanwhile { take(adapter, event) }
    if let failure { throw failure }
    (refusal, watch) = (nil, .never)
    if !renewal.hasPassed { endMiss(at: monotonicMilliseconds()) }
  }

  private func endMiss(at now: UInt64) {
    guard let since = missedSince else { return }
    let milliseconds = Int(clamping: now - since)
    if isMissReported || milliseconds > Advertisement.returnMilliseconds {
      report(.reachable(adapter: place.adapter, afterMilliseconds: milliseconds))
    }
    (missedSince, isMissReported) = (nil, false)
  }

  private func refuse(_ error: BluetoothError) {
    refusal = isPowered ? error : .adapterDown
    watch = Deadline(afterMilliseconds: 0)
    let isNew = monotonicMilliseconds() - (missedSince ?? 0) < 1000
    let delay = isNew ? AdvertisingKeeper.retryMilliseconds.soon : AdvertisingKeeper.retryMilliseconds.later
    renewal = min(renewal, Deadline(afterMilliseconds: delay))
  }

  /// While the adapter refuses: says so, and ends the links that keep others out.
  private func mind(_ refusal: BluetoothError) {
    guard watch.hasPassed else { return }
    let now = monotonicMilliseconds()
    if let missedSince, !isMissReported, now - missedSince >= Advertisement.returnMilliseconds {
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
        // Its end may be told of a moment later; if it is not, the link is ended again.
        if links.contains(device) { links.begin(device, at: now) }
        report(.ended(adapter: place.adapter, device.address))
      } catch {
        // It has ended by itself, or is tried again.
      }
    }
  }

  /// Leaves those that are up at the moment: an event may have been lost.
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

/// The links that other hosts have begun, and since when each of them has proved nothing.
struct LowEnergyLinks {
  /// Monotonic milliseconds: when it began, or was last seen with a proof.
  private var unprovedSince: [RemoteDevice: UInt64] = [:]

  var isEmpty: Bool { unprovedSince.isEmpty }

  func contains(_ device: RemoteDevice) -> Bool { unprovedSince[device] != nil }

  mutating func begin(_ device: RemoteDevice, at now: UInt64) { unprovedSince[device] = now }

  mutating func end(_ device: RemoteDevice) { unprovedSince[device] = nil }

  /// The kernel calls a link by its host's true address as soon as it knows that.
  mutating func rename(_ random: BluetoothAddress, to device: RemoteDevice) {
    guard let since = unprovedSince.removeValue(forKey: RemoteDevice(address: random, kind: .lowEnergyRandom)) else {
      return
    }
    unprovedSince[device] = since
  }

  /// Drops all but `devices`, and adds those that are missing where that is asked for.
  mutating func keep(_ devices: [RemoteDevice], at now: UInt64, addingNew: Bool) {
    unprovedSince = unprovedSince.filter { devices.contains($0.key) }
    if addingNew { for device in devices where !contains(device) { begin(device, at: now) } }
  }

  /// The links whose time to prove something is over. One on which a channel was opened in time has as long again.
  mutating func overdue(
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
