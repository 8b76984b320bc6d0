import HoldfastCore

/// The parts that a board gives to a device. The environment names their types, so that the compiler generates code for
/// exactly these.
public protocol FirmwareEnvironment: DeviceEnvironment
where Store == FlashStore<Flash, Crypto>, Rules == FirmwarePolicy, Time: Copyable {
  /// The flash memory that holds the device's state.
  associatedtype Flash: FlashMemory, ~Copyable
  /// The board: its serial line and its notices.
  associatedtype Hardware: Board, ~Copyable
  /// The machine that accepted commands move.
  associatedtype Machine: Actuator, ~Copyable
}

/// A complete device except for its board. It serves one prover after another on a serial line.
public struct FirmwareDevice<Environment: FirmwareEnvironment>: ~Copyable {
  private var session: DeviceSession<Environment>
  private var line: FramedLine<Environment.Hardware, Environment.Time>
  private var machine: Environment.Machine
  private var message = MessageBuffer()
  private let clock: Environment.Time
  /// The start of the open round, in the clock's milliseconds.
  private var roundStart: UInt64 = 0
  /// The time at which the totals were last recorded, in the clock's milliseconds.
  private var lastRecorded: UInt64 = 0

  /// The least interval between two recordings of the totals, in milliseconds. The totals count denied rounds and failures of
  /// peers that proved nothing.
  private static var recordingMilliseconds: UInt64 { 60_000 }

  /// Takes the parts of a device. Call ``start()`` before ``run()``.
  ///
  /// - Parameters:
  ///   - parts: the parts that were read from flash.
  ///   - board: the serial line.
  ///   - machine: the actuator.
  ///   - clock: the clocks.
  ///   - cryptography: makes an implementation of the cryptography. It is called twice: the session and the store have one
  ///     each.
  public init(
    _ parts: consuming FirmwareParts<Environment.Flash, Environment.Key, Environment.Random>,
    board: consuming Environment.Hardware, machine: consuming Environment.Machine, clock: Environment.Time,
    cryptography: () -> Environment.Crypto
  ) {
    let policy = Provision.policy(in: parts.journal.bytes)
    session = DeviceSession(
      deviceID: parts.deviceID, keyID: parts.keyID, cryptography: cryptography(), key: parts.key,
      store: FlashStore(parts.journal, cryptography()), policy: policy, random: parts.random, clock: clock,
      challenges: parts.challenges)
    self.machine = machine
    self.clock = clock
    line = FramedLine(board, clock: clock)
  }

  /// Loads the store, counts the start durably, and notifies the board.
  ///
  /// - Throws: ``FirmwareFault/store(_:)`` if the store cannot be loaded or the start cannot be recorded.
  public mutating func start() throws(FirmwareFault) {
    do throws(StoreFault) { try session.store.load() } catch { throw .store(error) }
    do throws(DeviceFault) {
      let realClock = try session.realClock()
      line.board.notify(.started(bootCount: try session.store.start(realClock: realClock)))
    } catch { throw .store(.flash) }
  }

  /// Serves until the line ends, which a real line never does. If a round cannot begin, it denies everything from then on.
  public mutating func run() {
    var next = beginRound()
    while next == .serve { next = serve() }
    if next == .deny { line.deny(&message) }
  }

  /// The next step of ``run()``.
  private enum Next {
    case serve, deny, end
  }

  /// Waits for one message and answers it.
  private mutating func serve() -> Next {
    rest()
    let deadline = roundStart + DeviceSession<Environment>.challengeLifetimeMilliseconds
    switch line.receive(into: &message, until: deadline) {
    case .message(let firstByteMilliseconds):
      return answer(waitedMilliseconds: firstByteMilliseconds - roundStart)
    case .emptyFrame:
      session.mail = MailAllowance()
      line.sendEmptyFrame()
      return beginRound()
    case .unusable:
      session.refuse(.malformed)
      return beginRound()
    case .slow: return refuse(.malformed)
    case .silence: return refuse(.challengeExpired)
    case .ended: return .end
    }
  }

  private mutating func beginRound() -> Next {
    do throws(DeviceFault) { try session.makeChallenge() } catch {
      line.board.notify(.sessionFault(error))
      return .deny
    }
    line.open(with: session.challenge.bytes)
    roundStart = clock.monotonicMilliseconds()
    return .serve
  }

  private mutating func answer(waitedMilliseconds: UInt64) -> Next {
    line.board.notify(.answering)
    if let status = session.answerMail(message.bytes) {
      line.board.notify(.answered(status))
      line.send(session.outgoing.bytes)
      // The challenge and its time are as they were.
      return session.isChallengeOpen ? .serve : beginRound()
    }
    let response = session.respond(to: message.bytes, waitedMilliseconds: waitedMilliseconds, actuator: &machine)
    line.board.notify(.answered(response.status))
    if response.delayMilliseconds > 0 {
      line.board.pause(until: clock.monotonicMilliseconds() + response.delayMilliseconds)
    }
    line.send(session.outgoing.bytes)
    guard response.awaitsConfirmation else { return beginRound() }
    // The peer's next message belongs to the round that is under way.
    roundStart = clock.monotonicMilliseconds()
    return .serve
  }

  private mutating func refuse(_ status: Status) -> Next {
    session.refuse(status)
    line.send(session.outgoing.bytes)
    return beginRound()
  }

  /// Does the work that a round need not wait for: records totals that are due, and makes room in the journal.
  private mutating func rest() {
    let isDue = isRecordingDue()
    do throws(DeviceFault) { session.store.rest(recordsTotals: isDue, realClock: try session.realClock()) } catch {
      // A store that has failed writes nothing more.
      return
    }
  }

  private mutating func isRecordingDue() -> Bool {
    let now = clock.monotonicMilliseconds()
    guard now >= lastRecorded + Self.recordingMilliseconds else { return false }
    lastRecorded = now
    return true
  }
}

/// A replacement for a device that has no identity or whose store fails. It answers every message with `internal`.
public struct DeniedDevice<Hardware: Board & ~Copyable, Time: Clock>: ~Copyable {
  private var line: FramedLine<Hardware, Time>
  private var message = MessageBuffer()

  /// Takes the board and the clock.
  public init(board: consuming Hardware, clock: Time) {
    line = FramedLine(board, clock: clock)
  }

  /// Denies every message until the line ends, which a real line never does.
  public mutating func run() {
    line.deny(&message)
  }
}

extension FramedLine where Device: ~Copyable, Time: ~Copyable {
  /// Answers every message with `internal` until the line ends.
  mutating func deny(_ message: inout MessageBuffer) {
    var refusal = ByteBuffer<8>()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: .internal, into: &refusal) } catch { return }
    while true {
      open(with: refusal.bytes)
      switch receive(into: &message, until: clock.monotonicMilliseconds() + UInt64(Limit.answer.everywhere)) {
      case .ended: return
      case .emptyFrame: sendEmptyFrame()
      case .message, .unusable, .slow, .silence: continue
      }
    }
  }
}
