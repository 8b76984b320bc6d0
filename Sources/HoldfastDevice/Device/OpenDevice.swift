import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Synchronization

/// A device that this process has opened: its folder, ledger, policy, key and clock.
///
/// Only one process at a time can open a folder. The device makes sessions for connections that you own (``session(actuator:)``),
/// serves one of them (``serve(_:actuator:timing:)``), or is served at endpoints by a ``DeviceServer``. Threads may share it.
public final class OpenDevice<Keys: DeviceKeys, Random: RandomSource & Sendable, Time: Clock & Sendable>: Sendable {
  /// The folder of the device.
  public let folder: DeviceFolder
  /// The ledger, which records every decision.
  package let ledger: Ledger
  /// The opened tokens that are remembered until the device is closed.
  package let memory: TokenMemory
  let keys: Keys
  let random: Random
  let clock: Time
  package let watch: PolicyWatch
  /// The pages of the audit log for couriers.
  let pages: AuditPages
  let notify: @Sendable (ServerNotice) -> Void
  private let state: Mutex<State>

  private struct State: ~Copyable {
    /// The lock on the folder; nil once the device is closed.
    var lock: DirectoryLock?
    /// The number of this start; nil before the first session.
    var bootCount: UInt64?
    var lastSession: UInt64 = 0
    /// Whether a server has the device. It closes the device at its end, which would end the rounds of a second one.
    var isServed = false
    var isClosed = false
  }

  /// Opens a device with a key, a random source and a clock of your own.
  ///
  /// - Parameters:
  ///   - folder: the folder, which was made for the key.
  ///   - keys: the source of the private key.
  ///   - random: the source of the random bytes in challenges.
  ///   - clock: the clock by which tokens expire and challenges time out.
  ///   - notify: called from any thread with what an operator should know; it must not block for long.
  /// - Throws: a ``DeviceFolderFault``; its ``DeviceFolderFault/folder(_:)`` is `locked` while another process has the device
  ///   open; ``DeviceFolderFault/file(_:_:)`` for the key is `otherDevice` if `keys` are another device's.
  public convenience init(
    folder: DeviceFolder, keys: Keys, random: Random, clock: Time,
    notify: @escaping @Sendable (ServerNotice) -> Void = { _ in }
  ) throws(DeviceFolderFault) {
    try self.init(
      folder: folder, keys: keys, random: random, clock: clock, rememberedTokenCount: TokenMemory.usualCapacity,
      notify: notify)
  }

  package init(
    folder: DeviceFolder, keys: Keys, random: Random, clock: Time, rememberedTokenCount: Int,
    notify: @escaping @Sendable (ServerNotice) -> Void = { _ in }
  ) throws(DeviceFolderFault) {
    let lock = try DeviceFolder.takeLock(of: folder.path)
    guard keys.publicPoint == folder.descriptor.publicKey.point else { throw .file(.key, .otherDevice) }
    ledger = try folder.openLedger()
    memory = TokenMemory(capacity: rememberedTokenCount)
    watch = PolicyWatch(try folder.policy(of: ledger, isRecording: true), ledger: ledger, notify: notify)
    pages = AuditPages(of: folder.descriptor.deviceID, agree: keys.agree) { () throws(RandomFailure) in
      var random = random
      return try random.fixedBytes()
    }
    state = Mutex(State(lock: lock))
    (self.folder, self.keys, self.random, self.clock, self.notify) = (folder, keys, random, clock, notify)
  }

  deinit { close() }

  /// Completes the ledger and frees the folder. It may be called any number of times, from any thread.
  ///
  /// Sessions and servers of the device should have ended. A session that has not makes no more challenges, and accepts nothing.
  public func close() {
    let held = state.withLock { state in
      state.isClosed = true
      return state.lock.take()
    }
    guard let lock = held else { return }
    if state.withLock({ $0.bootCount != nil }) { finishLedger() }
    _ = consume lock
  }

  /// Whether the device is closed: another process may have opened its folder.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Reserves the device for a server, until ``endServing()``. Returns false if it has one.
  func beginServing() -> Bool {
    state.withLock { state in
      defer { state.isServed = true }
      return !state.isServed
    }
  }

  /// Ends the reservation of the server that holds it.
  func endServing() {
    state.withLock { $0.isServed = false }
  }

  /// Counts the start of the device, which makes its challenges differ from those of every earlier start. Later calls do
  /// nothing.
  ///
  /// - Returns: the number of this start.
  /// - Throws: also `misuse` if the device is closed.
  @discardableResult
  func start() throws(LedgerError) -> UInt64 {
    try state.withLock { state throws(LedgerError) in
      guard !state.isClosed else { throw .database(.misuse) }
      if let count = state.bootCount { return count }
      let bootID = (try? Files.readFile(at: "/proc/sys/kernel/random/boot_id", limit: 64)) ?? []
      let host = String(decoding: bootID, as: UTF8.self)
      let count = try ledger.start(realClock: clock.unixSeconds(), host: host)
      state.bootCount = count
      return count
    }
  }

  /// Begins a session for one connection that you own: messages in, messages out.
  ///
  /// - Parameter actuator: carries out the commands that the session accepts.
  /// - Throws: `DeviceFault.store` if the ledger cannot be written or the device is closed, and `DeviceFault.cryptography` if the key cannot be used.
  public func session<Machine: Actuator>(
    actuator: Machine
  ) throws(DeviceFault) -> VerifierSession<Machine, Keys, Random, Time> {
    let number = nextSession()
    return try session(number, connection: number, transport: nil, actuator: actuator)
  }

  /// Returns the number of the next session, from 1. With the number of the start, it makes challenges differ.
  func nextSession() -> UInt64 {
    state.withLock { state in
      state.lastSession += 1
      return state.lastSession
    }
  }

  /// Begins a session with a number of its own, whose notices name `connection`, and whose rounds come over `transport`.
  func session<Machine: Actuator>(
    _ number: UInt64, connection: UInt64, transport: RoundTransport?, actuator: Machine
  ) throws(DeviceFault) -> VerifierSession<Machine, Keys, Random, Time> {
    let bootCount: UInt64
    do throws(LedgerError) { bootCount = try start() } catch { throw .store }
    do throws(CryptographyFailure) {
      let challenges = ChallengeSource(seed: try keys.challengeSeed(), bootCount: bootCount, connection: number)
      return VerifierSession(
        of: self, connection: connection, key: try keys.key(), challenges: challenges, transport: transport,
        actuator: actuator)
    } catch { throw .cryptography }
  }

  /// Writes totals and counts that are due.
  func recordTotals() {
    if let notice = ledger.takeAuditNotice() { notify(.auditLogNearlyFull(kept: notice.kept, bound: notice.bound)) }
    ledger.recordTotals(milliseconds: clock.monotonicMilliseconds(), realClock: clock.unixSeconds())
  }

  private func finishLedger() {
    let realClock = clock.unixSeconds()
    ledger.recordTotals(milliseconds: clock.monotonicMilliseconds(), realClock: realClock, isForced: true)
    do throws(LedgerError) {
      try ledger.finish(realClock: realClock)
      try ledger.checkpoint()
    } catch {
      notify(.ledgerFault(LedgerFault(error)))
    }
  }
}

extension OpenDevice where Keys == DeviceSecrets {
  /// Opens a device whose key is in its folder, with a random source and a clock of your own.
  ///
  /// - Parameters:
  ///   - folder: the folder of the device.
  ///   - random: the source of the random bytes in challenges.
  ///   - clock: the clock by which tokens expire and challenges time out.
  ///   - notify: called from any thread with what an operator should know; it must not block for long.
  /// - Throws: a ``DeviceFolderFault``.
  public convenience init(
    folder: DeviceFolder, random: Random, clock: Time, notify: @escaping @Sendable (ServerNotice) -> Void = { _ in }
  ) throws(DeviceFolderFault) {
    try self.init(folder: folder, keys: try folder.secrets(), random: random, clock: clock, notify: notify)
  }
}

extension OpenDevice where Keys == DeviceSecrets, Random == SystemRandom, Time == SystemClock {
  /// Opens a device with the key in its folder and the clock of the system.
  ///
  /// - Parameters:
  ///   - path: the path of the folder.
  ///   - notify: called from any thread with what an operator should know; it must not block for long.
  /// - Throws: a ``DeviceFolderFault``.
  public convenience init(
    at path: String, notify: @escaping @Sendable (ServerNotice) -> Void = { _ in }
  ) throws(DeviceFolderFault) {
    try self.init(folder: try .open(at: path), random: SystemRandom(), clock: SystemClock(), notify: notify)
  }
}
