/// A machine that accepted commands move: a lock, a charger, a pump.
///
/// For each round whose rules accept its command, the device calls ``reservePlace()`` before the round is recorded. Once
/// the record is durable, it calls one of ``perform(_:of:result:)`` and ``releasePlace()``. The commands of users
/// (`UserCommandName`) never reach the actuator. A machine that is always ready implements only
/// ``perform(_:result:)``.
public protocol Actuator: ~Copyable {
  /// Returns whether the actuator carries out `command` at all. If not, the round is denied with `commandRefused`.
  func carriesOut(_ command: BoundedText<32>) -> Bool

  /// Reserves a place for one command. Returns false if there is none; the round then ends with `busy`, and nothing is
  /// recorded. It must not wait, because the device's store is locked meanwhile.
  mutating func reservePlace() -> Bool

  /// Gives back the place of a round that was not accepted after all.
  mutating func releasePlace()

  /// Carries out `request` and appends its output, at most 1024 bytes, to `result`. The device calls it once for each
  /// accepted round, after the round's record is durable. It uses up the place.
  ///
  /// - Throws: if the command could not be carried out; the round then ends with `internal`.
  mutating func perform(
    _ request: borrowing Request, of round: borrowing AcceptedRound, result: inout ResultBuffer
  ) throws(ActuatorFailure)

  /// Carries out `request` in the same way, for an actuator that does not need to know whose round it is.
  mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure)
}

extension Actuator where Self: ~Copyable {
  /// Returns true.
  @inlinable public func carriesOut(_ command: BoundedText<32>) -> Bool { true }

  /// Returns true.
  @inlinable public mutating func reservePlace() -> Bool { true }

  /// Does nothing.
  @inlinable public mutating func releasePlace() {}

  /// Calls ``perform(_:result:)``.
  @inlinable public mutating func perform(
    _ request: borrowing Request, of round: borrowing AcceptedRound, result: inout ResultBuffer
  ) throws(ActuatorFailure) {
    try perform(request, result: &result)
  }
}

/// An accepted round, for the actuator that carries out its command.
public struct AcceptedRound: Sendable, Equatable {
  /// The number of the round's entry in the audit log; 0 if the store has no such log.
  public let sequence: UInt64
  /// The user whose codes the command needed, at most 32 bytes; nil if it needed none.
  public let user: BoundedText<32>?
  /// The app that the token names (`sub`), at most 64 bytes.
  public let subject: BoundedText<64>

  /// Creates the round from its parts; by default, one that was not recorded.
  public init(sequence: UInt64 = 0, user: BoundedText<32>? = nil, subject: BoundedText<64> = BoundedText()) {
    (self.sequence, self.user, self.subject) = (sequence, user, subject)
  }
}

/// The failure of a command that was accepted but could not be carried out.
public struct ActuatorFailure: Error, Equatable {
  /// The reason that a command was not carried out. After `timedOut`, `ended` and `badAnswer` it may have been.
  public enum Reason: UInt8, Sendable, CaseIterable {
    /// The actuator reports that the command failed.
    case failed = 0
    /// The actuator does not know the command, although policy allows it.
    case unknownCommand = 1
    /// The actuator is not running. The command was not handed over.
    case unavailable = 2
    /// The actuator was occupied until the command had waited too long. The command was not handed over.
    case notHandedOver = 3
    /// The actuator did not answer in time.
    case timedOut = 4
    /// The actuator ended before it answered.
    case ended = 5
    /// The actuator's answer was not as documented.
    case badAnswer = 6
    /// The user gave the refusal in place of a seal, so the device did not accept the command. No actuator reports this.
    case refusedByUser = 7
  }

  /// The reason.
  public let reason: Reason
  /// The actuator's words, at most 64 bytes, which the peer receives as the result; empty if there are none.
  public let text: BoundedText<64>

  /// Creates a failure without words.
  public init(isUnknownCommand: Bool = false) {
    self.init(isUnknownCommand ? .unknownCommand : .failed)
  }

  /// Creates a failure from its parts.
  public init(_ reason: Reason, text: BoundedText<64> = BoundedText()) {
    (self.reason, self.text) = (reason, text)
  }

  /// Whether the actuator does not know the command at all, although policy allows it.
  public var isUnknownCommand: Bool { reason == .unknownCommand }
}

/// A lock that ``LockActuator`` moves, simulated or not.
public protocol Lock: ~Copyable {
  /// The present state of the lock.
  var current: LockState { get }
  /// Moves the lock. Throws if it is not in the state `target` afterwards.
  mutating func move(to target: LockState) throws(ActuatorFailure)
}

/// The state of a lock.
public enum LockState: Sendable, Equatable {
  /// The lock is locked or unlocked.
  case locked, unlocked
}

/// An actuator with the commands of a lock: `lock`, `unlock` and `status`, each of which answers `locked` or
/// `unlocked`, and two that do nothing but answer `configured` and `safe opened`: `configure` and `open-safe`.
///
/// It ignores parameters. It does not know any other command, even if policy names one.
public struct LockActuator<Device: Lock & ~Copyable>: ~Copyable, Actuator {
  private var lock: Device

  /// Creates an actuator that moves `lock`.
  public init(_ lock: consuming Device) {
    self.lock = lock
  }

  /// Returns whether `command` is one of the five.
  @inline(never)
  public func carriesOut(_ command: BoundedText<32>) -> Bool {
    let name = command.bytes
    return name.elementsEqual("lock") || name.elementsEqual("unlock") || name.elementsEqual("status")
      || name.elementsEqual("configure") || name.elementsEqual("open-safe")
  }

  /// Carries out a command of the lock and appends its answer to `result`.
  ///
  /// - Throws: if the lock does not move, or for an unknown command.
  public mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    let command = request.command
    if command.bytes.elementsEqual("lock") {
      try lock.move(to: .locked)
      try append("locked", to: &result)
    } else if command.bytes.elementsEqual("unlock") {
      try lock.move(to: .unlocked)
      try append("unlocked", to: &result)
    } else if command.bytes.elementsEqual("status") {
      try append(lock.current == .locked ? "locked" : "unlocked", to: &result)
    } else if command.bytes.elementsEqual("configure") {
      try append("configured", to: &result)
    } else if command.bytes.elementsEqual("open-safe") {
      try append("safe opened", to: &result)
    } else {
      throw ActuatorFailure(isUnknownCommand: true)
    }
  }

  private func append(_ answer: StaticString, to result: inout ResultBuffer) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(answer) } catch { throw ActuatorFailure() }
  }
}

extension LockActuator: Copyable where Device: Copyable {}
extension LockActuator: Sendable where Device: Sendable & ~Copyable {}
