import Glibc
import HoldfastLinux
import Synchronization
import Testing

import HoldfastTransport

/// The keeper of an adapter's connectability, against a stand-in of the kernel.
struct AdvertisementTests {
  private static let host: [UInt8] = [1, 2, 3, 4, 5, 6]
  private static let address = BluetoothAddress(leastSignificantFirst: host[...])
  /// Of an adapter with extended advertising, and of one without.
  private static let extended: [UInt8] = [0x80, 0, 0, 0, 31, 31, 4, 0]
  private static let legacy: [UInt8] = [0, 0, 0, 0, 31, 31, 5, 0]
  /// Of an adapter with extended advertising whose instances are all in use.
  private static let full: [UInt8] = [0x80, 0, 0, 0, 31, 31, 4, 4, 1, 2, 3, 4]
  private static let refused: UInt8 = 0x14
  /// Pauses with which an adapter that refuses is not tried again by itself before the next regular renewal.
  private static let noRetry = (soon: 600_000, later: 600_000)

  /// An advertisement on an adapter of its own, begun on instance 4 of four or 5 of five.
  private final class Lab: Sendable {
    let kernel: ManagementStandIn
    let adapter: UInt16
    let notices = Mutex<[AdvertisementNotice]>([])
    let standing = Mutex(LinkStanding.absent)
    private let advertisement = Mutex<Advertisement?>(nil)

    init(
      _ number: UInt16, features: [UInt8] = extended, returnMilliseconds: Int = Advertisement.returnMilliseconds,
      retryMilliseconds: (soon: Int, later: Int) = Advertisement.retryMilliseconds
    ) throws {
      kernel = try ManagementStandIn()
      adapter = adapterOfTests(number)
      let life = try Worker { [self] in
        try Advertisement(
          adapter: adapter, psm: 0x80, name: "gate", management: kernel.management,
          returnMilliseconds: returnMilliseconds, retryMilliseconds: retryMilliseconds,
          standing: { [self] _ in standing.withLock { $0 } },
          report: { [self] notice in notices.withLock { $0.append(notice) } })
      }
      try kernel.answer(.readAdvertisingFeatures, features)
      if features == full {
        try kernel.answer(.readConnections, [0, 0])
      } else {
        try kernel.answer(.addAdvertising)
      }
      advertisement.withLock { $0 = try? life.value() }
    }

    func begin(flags: UInt8 = 0, kind: UInt8 = 1) {
      kernel.send(0x000b, adapter: adapter, host + [kind, flags, 0, 0, 0, 0, 0])
    }

    func end(kind: UInt8 = 1) { kernel.send(0x000c, adapter: adapter, host + [kind, 3]) }

    /// Answers another instance's addition, and the removal of the one before.
    func swap(to instance: UInt8, from old: UInt8) throws {
      try kernel.answer(.readAdvertisingFeatures, extended)
      #expect(try kernel.answer(.addAdvertising).parameters.first == instance)
      #expect(try kernel.answer(.removeAdvertising).parameters == [old])
    }

    /// Refuses a renewal in each way that is tried.
    func refuse() throws {
      try kernel.answer(.readAdvertisingFeatures, extended)
      for code: ManagementCommand.Code in [.addAdvertising, .addAdvertising] {
        try kernel.answer(code, status: refused)
      }
      try kernel.answer(.removeAdvertising)
      try kernel.answer(.addAdvertising, status: refused)
    }

    /// Ends the advertisement, which removes `instance`.
    func stop(_ instance: UInt8) throws {
      let life = try Worker { [self] in advertisement.withLock { $0 = nil } }
      #expect(try kernel.answer(.removeAdvertising).parameters == [instance])
      try life.value()
    }
  }

  @Test func `an advertisement takes the highest free instance, and gives it back`() throws {
    let (kernel, adapter) = (try ManagementStandIn(), adapterOfTests(0))
    let life = try Worker {
      _ = try Advertisement(adapter: adapter, psm: 0x80, name: "gate", management: kernel.management)
    }
    try kernel.answer(.readAdvertisingFeatures, [0, 0, 0, 0, 31, 31, 4, 2, 1, 4])
    let added = try kernel.answer(.addAdvertising)
    let data = AdvertisingData.advertisement
    let response = AdvertisingData.scanResponse(psm: 0x80, name: "gate")
    #expect(added.adapter == adapter)
    #expect(
      added.parameters == [3, 0x03, 0, 0, 0, 0, 0, 60, 0, UInt8(data.count), UInt8(response.count)] + data + response)
    #expect(try kernel.answer(.removeAdvertising).parameters == [3])
    try life.value()
  }

  @Test func `as soon as a link begins it advertises again, on another instance before the old one is removed`() throws
  {
    let lab = try Lab(1)
    lab.begin()
    try lab.swap(to: 3, from: 4)
    lab.begin()
    try lab.swap(to: 4, from: 3)
    // Nothing is to be done when they end.
    lab.end()
    try lab.stop(4)
    #expect(lab.notices.withLock { $0.isEmpty })
  }

  @Test func `an adapter whose instances take turns is renewed in place`() throws {
    let lab = try Lab(2, features: Self.legacy)
    lab.begin()
    try lab.kernel.answer(.readAdvertisingFeatures, Self.legacy)
    #expect(try lab.kernel.answer(.addAdvertising).parameters.first == 5)
    try lab.stop(5)
  }

  @Test func `links of classic Bluetooth, and those that this host began, change nothing`() throws {
    let lab = try Lab(3)
    lab.begin(kind: 0)
    lab.end(kind: 0)
    lab.begin(flags: 8)
    lab.end()
    lab.kernel.send(0x000b, adapter: adapterOfTests(4), Self.host + [1, 0, 0, 0, 0, 0, 0])
    try lab.stop(4)
  }

  @Test func `an adapter that refuses while a link is up advertises as soon as that has ended`() throws {
    let lab = try Lab(5, returnMilliseconds: 600_000, retryMilliseconds: Self.noRetry)
    lab.standing.withLock { $0 = .proved }
    lab.begin()
    try lab.refuse()
    lab.end()
    try lab.swap(to: 3, from: 4)
    try lab.stop(3)
    #expect(lab.notices.withLock { $0.isEmpty })
  }

  @Test func `an adapter that refuses after the last link is tried again, and both are said`() throws {
    let lab = try Lab(6)
    lab.standing.withLock { $0 = .proved }
    lab.begin()
    try lab.refuse()
    lab.end()
    let deadline = Deadline(afterMilliseconds: generousMilliseconds)
    while lab.notices.withLock({ $0.isEmpty }), !deadline.hasPassed { try lab.refuse() }
    #expect(lab.notices.withLock { $0 } == [.unreachable(adapter: lab.adapter, .permissionDenied)])
    try lab.swap(to: 3, from: 4)
    try lab.stop(3)
    let last = lab.notices.withLock { $0.last }
    guard case .reachable(lab.adapter, let milliseconds)? = last else {
      return #expect(Bool(false), "\(String(describing: last))")
    }
    #expect(milliseconds >= Advertisement.returnMilliseconds)
  }

  @Test func `an adapter without a free instance at first is tried until it has one, and both are said`() throws {
    let lab = try Lab(7, features: Self.full)
    let deadline = Deadline(afterMilliseconds: generousMilliseconds)
    while lab.notices.withLock({ $0.isEmpty }), !deadline.hasPassed {
      try lab.kernel.answer(.readAdvertisingFeatures, Self.full)
    }
    #expect(lab.notices.withLock { $0 } == [.unreachable(adapter: lab.adapter, .noInstance)])
    try lab.kernel.answer(.readAdvertisingFeatures, Self.extended)
    #expect(try lab.kernel.answer(.addAdvertising).parameters.first == 4)
    try lab.stop(4)
    guard case .reachable(lab.adapter, _)? = lab.notices.withLock({ $0.last }) else {
      Issue.record("it is not said")
      return
    }
  }

  @Test func `an adapter that is switched off is said to be, and is renewed when it is on again`() throws {
    let lab = try Lab(8, returnMilliseconds: 0, retryMilliseconds: Self.noRetry)
    lab.kernel.send(0x0006, adapter: lab.adapter, [0, 2, 0, 0])
    try lab.refuse()
    let deadline = Deadline(afterMilliseconds: generousMilliseconds)
    while lab.notices.withLock({ $0.isEmpty }), !deadline.hasPassed { sched_yield() }
    #expect(lab.notices.withLock { $0 } == [.unreachable(adapter: lab.adapter, .adapterDown)])
    lab.kernel.send(0x0006, adapter: lab.adapter, [1, 2, 0, 0])
    try lab.swap(to: 3, from: 4)
    try lab.stop(3)
  }

  @Test func `a link that keeps others out is ended when its host proves nothing in two seconds, and no other`() throws
  {
    let lab = try Lab(9, returnMilliseconds: 600_000, retryMilliseconds: Self.noRetry)
    let before = Deadline(afterMilliseconds: Advertisement.provingMilliseconds - 500)
    lab.begin()
    try lab.kernel.answer(
      .readConnections, [1, 0] + Self.host + [1], refusing: Self.refused, features: Self.extended)
    #expect(before.hasPassed)
    #expect(try lab.kernel.answer(.disconnect).parameters == Self.host + [1])
    lab.end()
    try lab.swap(to: 3, from: 4)
    try lab.stop(3)
    #expect(lab.notices.withLock { $0 } == [.ended(adapter: lab.adapter, Self.address)])
  }
}

/// How long a link that keeps others out may last.
struct LowEnergyLinksTests {
  private let device = RemoteDevice(
    address: BluetoothAddress(leastSignificantFirst: [1, 2, 3, 4, 5, 6]), kind: .lowEnergyPublic)

  private func links() -> LowEnergyLinks {
    var links = LowEnergyLinks()
    links.begin(device, at: 10_000)
    return links
  }

  @Test(
    arguments: [
      (.absent, 11_999, false), (.absent, 12_000, true), (.connected(milliseconds: 1999), 13_000, false),
      (.connected(milliseconds: 2000), 12_500, true), (.connected(milliseconds: 100), 13_999, false),
      (.connected(milliseconds: 100), 14_000, true), (.proved, 99_000, false),
    ] as [(LinkStanding, UInt64, Bool)])
  func `a link has two seconds for a channel, and as long again for its proof`(
    standing: LinkStanding, now: UInt64, isOverdue: Bool
  ) {
    var links = links()
    #expect(links.overdue(at: now) { _ in standing } == (isOverdue ? [device] : []))
  }

  @Test func `the time begins anew with the end of the last proof's connection`() {
    var links = links()
    #expect(links.overdue(at: 50_000) { _ in .proved }.isEmpty)
    #expect(links.overdue(at: 51_999) { _ in .absent }.isEmpty)
    #expect(links.overdue(at: 52_000) { _ in .absent } == [device])
  }

  @Test func `a link keeps its time when its host's true address becomes known`() throws {
    let random = try BluetoothAddress(parsing: "7A:00:00:00:00:01")
    var links = LowEnergyLinks()
    links.begin(RemoteDevice(address: random, kind: .lowEnergyRandom), at: 10_000)
    links.rename(random, to: device)
    #expect(links.overdue(at: 12_000) { _ in .absent } == [device])
  }

  @Test func `a link whose end was missed is forgotten`() {
    var links = links()
    links.keep([], at: 10_000, addingNew: false)
    #expect(links.isEmpty)
    links.keep([device], at: 10_000, addingNew: false)
    #expect(links.isEmpty)
    links.keep([device], at: 10_000, addingNew: true)
    #expect(links.contains(device))
  }
}
