import HoldfastCore

/// A whole device but for its board: answers one prover after the other along a line.
public struct FirmwareDevice<
  Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable,
  Random: RandomSource & ~Copyable, Time: Clock, Hardware: Board & ~Copyable, Machine: Actuator & ~Copyable
>: ~Copyable {
  public typealias Session = DeviceSession<
    Crypto, Key, FlashStore<Flash, Crypto>, FirmwarePolicy, Random, Time
  >

  private var session: Session
  private var line: FramedLine<Hardware, Time>
  private var machine: Machine
  private var message = MessageBuffer()
  private let clock: Time
  /// When the open round began, in the clock's milliseconds.
  private var roundStart: UInt64 = 0
  private var lastRecorded: UInt64 = 0

  /// How often strangers' failures and denied rounds are written down at most, in milliseconds.
  private static var recordingMilliseconds: UInt64 { 60_000 }

  /// Takes its parts; it has to ``start()`` before it can ``run()``. `cryptography` makes what session and store have one of.
  public init(
    _ parts: consuming FirmwareParts<Flash, Key, Random>, board: consuming Hardware, machine: consuming Machine,
    clock: Time, cryptography: () -> Crypto
  ) {
    let policy = Provision.policy(in: parts.journal.bytes)
    session = Session(
      deviceID: parts.deviceID, keyID: parts.keyID, cryptography: cryptography(), key: parts.key,
      store: FlashStore(parts.journal, cryptography()), policy: policy, random: parts.random, clock: clock,
      challenges: parts.challenges)
    self.machine = machine
    self.clock = clock
    line = FramedLine(board, clock: clock)
  }

  /// Reads what the device keeps, and counts the start, durably.
  public mutating func start() throws(FirmwareFault) {
    do throws(StoreFault) { try session.store.load() } catch { throw .store(error) }
    do throws(StoreFailure) {
      let realClock = try session.realClock()
      line.board.notify(.started(bootCount: try session.store.start(realClock: realClock)))
    } catch { throw .store(.flash) }
  }

  /// Serves until the line ends, which a real one does not. Once a round cannot begin, it denies everything.
  public mutating func run() {
    var next = beginRound()
    while next == .serve { next = serve() }
    if next == .deny { line.deny(&message) }
  }

  /// How it goes on.
  private enum Next {
    case serve, deny, end
  }

  /// Waits for one message and answers it.
  private mutating func serve() -> Next {
    rest()
    let deadline = roundStart + Session.challengeLifetimeMilliseconds
    switch line.receive(into: &message, until: deadline) {
    case .message(let firstByteMilliseconds):
      return answer(waitedMilliseconds: firstByteMilliseconds - roundStart)
    case .emptyFrame:
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
    do throws(SessionFault) { try session.makeChallenge() } catch {
      line.board.notify(.sessionFault(error))
      return .deny
    }
    line.open(with: session.challenge.bytes)
    roundStart = clock.monotonicMilliseconds()
    return .serve
  }

  private mutating func answer(waitedMilliseconds: UInt64) -> Next {
    line.board.notify(.answering)
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

  /// Does what a round need not wait for.
  private mutating func rest() {
    let isDue = isRecordingDue()
    do throws(StoreFailure) { session.store.rest(recordsTotals: isDue, realClock: try session.realClock()) } catch {
      // A store that has failed has nothing to write any more.
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

/// What stands in for a device that has no identity, or cannot remember: whatever is asked, it answers `internal`.
public struct DeniedDevice<Hardware: Board & ~Copyable, Time: Clock>: ~Copyable {
  private var line: FramedLine<Hardware, Time>
  private var message = MessageBuffer()

  public init(board: consuming Hardware, clock: Time) {
    line = FramedLine(board, clock: clock)
  }

  /// Denies until the line ends, which a real one does not.
  public mutating func run() {
    line.deny(&message)
  }
}

extension FramedLine where Device: ~Copyable, Time: ~Copyable {
  /// Answers `internal` to everything, until the line ends.
  mutating func deny(_ message: inout MessageBuffer) {
    var refusal = ByteBuffer<8>()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: .internal, into: &refusal) } catch { return }
    while true {
      open(with: refusal.bytes)
      switch receive(into: &message, until: clock.monotonicMilliseconds() + 30_000) {
      case .ended: return
      case .emptyFrame: sendEmptyFrame()
      case .message, .unusable, .slow, .silence: continue
      }
    }
  }
}
