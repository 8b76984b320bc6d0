import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// The loop that serves one peer on the calling thread, round after round.
struct ConnectionLoop<
  Machine: Actuator, Keys: DeviceKeys, Random: RandomSource & Sendable, Time: Clock & Sendable
>: ~Copyable {
  let channel: any MessageChannel
  let timing: ServerTiming
  /// The place of the connection in a server; nil for a connection that is served by itself.
  let place: (table: ConnectionTable, number: UInt64)?
  var session: VerifierSession<Machine, Keys, Random, Time>
  /// Whether the peer's next message belongs to the round that is under way.
  private var awaitsConfirmation = false
  /// Whether the last message was mail, after which the challenge before it still waits for its answer.
  private var isChallengeOpen = false
  /// The moment at which the device began to wait for an answer, in monotonic milliseconds, and the end of its patience.
  private var waiting = (since: UInt64(0), until: Deadline(afterMilliseconds: 0))

  /// The result of waiting for M2.
  private enum Arrival {
    case message([UInt8], waitedMilliseconds: UInt64)
    /// No byte came in time.
    case silence
    /// The bytes were not a whole message.
    case unusable
    /// An empty frame: the peer asks to begin again.
    case emptyFrame
    /// The peer disconnected, or the server stops.
    case ended
  }

  init(
    _ channel: any MessageChannel, timing: ServerTiming, place: (table: ConnectionTable, number: UInt64)?,
    session: consuming VerifierSession<Machine, Keys, Random, Time>
  ) {
    (self.channel, self.timing, self.place) = (channel, timing, place)
    self.session = session
  }

  /// Serves until the peer disconnects, sends something that is not a message, lets two challenges in a row expire, or the
  /// server stops.
  mutating func run() {
    serveRounds()
    channel.linger(milliseconds: timing.farewellMilliseconds)
    channel.shutdown()
  }

  private mutating func serveRounds() {
    var silenceCount = 0
    while silenceCount < 2 {
      if !isChallengeOpen {
        if !awaitsConfirmation { guard challenge() else { return } }
        waiting = (
          session.device.clock.monotonicMilliseconds(), Deadline(afterMilliseconds: timing.answerMilliseconds)
        )
      }
      (awaitsConfirmation, isChallengeOpen) = (false, false)
      switch receive() {
      case .message(let message, let waitedMilliseconds):
        silenceCount = 0
        guard answer(message, waitedMilliseconds: waitedMilliseconds) else { return }
      case .silence:
        silenceCount += 1
        guard send(session.refuse(.challengeExpired)) else { return }
      case .unusable:
        _ = send(session.refuse(.malformed))
        return
      case .emptyFrame:
        silenceCount = 0
        guard beginAnew() else { return }
      case .ended:
        return
      }
    }
  }

  /// Begins a round. Returns whether the connection goes on.
  private mutating func challenge() -> Bool {
    do throws(DeviceFault) { return send(try session.challenge()) } catch {
      session.device.notify(.fault(connection: session.connection, error))
      return false
    }
  }

  private func receive() -> Arrival {
    let clock = session.device.clock
    do throws(TransportError) {
      let received = try channel.receive(by: waiting.until, wholeWithin: timing.messageMilliseconds)
      let waited = clock.monotonicMilliseconds() - waiting.since
      let transfer = UInt64(max(received.transferMilliseconds, 0))
      return .message(received.bytes, waitedMilliseconds: waited - min(transfer, waited))
    } catch {
      switch error {
      case .timedOutWaiting: return .silence
      case .timedOutReading, .tooLong, .truncated: return .unusable
      case .emptyFrame: return .emptyFrame
      default: return .ended
      }
    }
  }

  /// Answers a message. Returns whether the connection goes on.
  private mutating func answer(_ message: [UInt8], waitedMilliseconds: UInt64) -> Bool {
    if let place, !place.table.beginJudging(place.number) { return false }
    let answer = session.judge(message.span, waitedMilliseconds: waitedMilliseconds)
    let outcome = answer.outcome
    place?.table.endJudging(place?.number ?? 0, acceptedBy: outcome.credential)
    (awaitsConfirmation, isChallengeOpen) = (outcome.awaitsConfirmation, outcome.isMail)
    session.report(outcome)
    let delay = min(outcome.delayMilliseconds, timing.greatestDelayMilliseconds)
    if delay > 0, channel.isEnded(withinMilliseconds: Int(delay)) { return false }
    return send(answer.message) && !outcome.closesConnection
  }

  /// Answers an empty frame with one: the messages after it are fresh. Returns whether the peer has taken it.
  private mutating func beginAnew() -> Bool {
    session.endPermission()
    if let place { place.table.endJudging(place.number, acceptedBy: nil) }
    do throws(TransportError) {
      try channel.sendEmptyFrame(by: Deadline(afterMilliseconds: timing.sendMilliseconds))
      return true
    } catch { return false }
  }

  /// Sends a message. Returns whether the peer has taken it.
  private func send(_ message: [UInt8]) -> Bool {
    do throws(TransportError) {
      try channel.send(message.span, by: Deadline(afterMilliseconds: timing.sendMilliseconds))
      return true
    } catch { return false }
  }
}

extension OpenDevice {
  /// Serves one connection that you own, on the calling thread, until the peer disconnects, sends something that is not a
  /// message, lets two challenges in a row expire, or the channel is shut down. The channel is shut down when it returns.
  ///
  /// - Throws: as ``session(actuator:)``; a fault after that is a notice, and ends the connection.
  public func serve<Machine: Actuator>(
    _ channel: any MessageChannel, actuator: Machine, timing: ServerTiming = ServerTiming()
  ) throws(DeviceFault) {
    var loop = ConnectionLoop(channel, timing: timing, place: nil, session: try session(actuator: actuator))
    loop.run()
  }
}
