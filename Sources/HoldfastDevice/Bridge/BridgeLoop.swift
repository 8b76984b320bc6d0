import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// The loop of a bridge, on the thread that owns the line. It keeps the line open, reads it, and serves one prover after
/// another.
struct BridgeLoop {
  private let bridge: Bridge
  /// The line; nil while it is lost.
  private var line: DeviceLine?
  /// The earliest time at which the line is opened again. A line that ends at once must not keep the bridge busy.
  private var nextOpening: Deadline
  /// Whether the loss of the line was reported.
  private var isLossKnown = false
  private var connectionCount: UInt64 = 0

  init(of bridge: Bridge) {
    self.bridge = bridge
    line = bridge.line.withLock { $0 }.map { DeviceLine($0, timing: bridge.timing) }
    nextOpening = Deadline(afterMilliseconds: bridge.timing.retryMilliseconds)
  }

  mutating func run() {
    while !bridge.stopFlag.isRaised {
      guard var open = line.take() else {
        reopen()
        continue
      }
      do throws(HardwareFault) {
        try step(&open)
        line = open
      } catch {
        bridge.closeLine()
      }
    }
  }

  /// Drops a message that has arrived on the line, or serves a prover that has arrived.
  private mutating func step(_ line: inout DeviceLine) throws(HardwareFault) {
    let (hasArrived, hasRung) = try line.wait(or: .arrival(on: bridge.place.bell), until: .never)
    if hasArrived { _ = try line.take() }
    if hasRung, let prover = bridge.place.next() { try serve(prover, over: &line) }
  }

  private mutating func serve(_ prover: Connection, over line: inout DeviceLine) throws(HardwareFault) {
    connectionCount += 1
    bridge.notify(.connected(connection: connectionCount, prover.peer))
    var relay = RelaySession(prover: prover, place: bridge.place, timing: bridge.timing)
    defer {
      let hadPlace = end(prover)
      bridge.notify(
        hadPlace
          ? .disconnected(connection: connectionCount, messageCount: relay.messageCount)
          : .displaced(connection: connectionCount))
    }
    do throws(HardwareFault) {
      if case .refused(let status) = try relay.run(over: &line) { refuse(prover, status) }
    } catch {
      sayLost(error)
      refuse(prover, .internal)
      throw error
    }
  }

  private func refuse(_ prover: Connection, _ status: Status) {
    guard !bridge.stopFlag.isRaised else { return }
    bridge.notify(.refused(connection: connectionCount, status))
    Bridge.refuse(prover, status, milliseconds: bridge.timing.farewellMilliseconds)
  }

  /// Closes a prover's connection. Returns whether the prover had its place until the end.
  @discardableResult
  private func end(_ prover: Connection) -> Bool {
    prover.linger(milliseconds: bridge.timing.farewellMilliseconds)
    return bridge.place.leave(prover)
  }

  /// Tries to open the line, at once if it was open for long enough. Refuses the provers that arrive meanwhile.
  private mutating func reopen() {
    waitForOpening()
    guard !bridge.stopFlag.isRaised else { return }
    nextOpening = Deadline(afterMilliseconds: bridge.timing.retryMilliseconds)
    do throws(TransportError) {
      line = DeviceLine(try bridge.openLine(), timing: bridge.timing)
    } catch { return sayLost(.transport(error)) }
    if isLossKnown { bridge.notify(.hardwareBack) }
    isLossKnown = false
  }

  private mutating func waitForOpening() {
    let bell = bridge.place.bell
    while !nextOpening.hasPassed, !bridge.stopFlag.isRaised {
      let hasRung = try? Connection.wait(for: .arrival(on: bell), or: .end(of: bell), until: nextOpening).first
      guard hasRung == true, let prover = bridge.place.next() else { continue }
      connectionCount += 1
      refuse(prover, .internal)
      end(prover)
    }
  }

  /// Reports a loss once, until the line is open again.
  private mutating func sayLost(_ fault: HardwareFault) {
    guard !isLossKnown, !bridge.stopFlag.isRaised else { return }
    isLossKnown = true
    bridge.notify(.hardwareLost(fault))
  }
}

/// The bridge's end of the line, between two losses of it.
struct DeviceLine {
  private var link: DeviceLink
  private let timing: BridgeTiming
  /// Whether an empty frame was sent that is not answered yet. The next prover then needs no other.
  private var isAsked = false

  /// The result of reading the line.
  enum Arrival {
    /// A repetition, or bytes that are dropped.
    case nothing
    /// The answer to an empty frame. A fresh challenge follows.
    case fresh
    case message([UInt8])
  }

  init(_ connection: Connection, timing: BridgeTiming) {
    link = DeviceLink(connection)
    self.timing = timing
  }

  /// Asks for a fresh challenge, unless an earlier request is not answered yet. `isAgain` asks in any case.
  mutating func ask(isAgain: Bool = false) throws(HardwareFault) {
    guard !isAsked || isAgain else { return }
    do throws(TransportError) {
      try link.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: timing.sendMilliseconds))
    } catch { throw .transport(error) }
    isAsked = true
  }

  mutating func send(_ message: [UInt8]) throws(HardwareFault) {
    do throws(TransportError) {
      try link.connection.send(message.span, timeoutMilliseconds: timing.sendMilliseconds)
    } catch { throw .transport(error) }
  }

  /// Takes one message if it has begun to arrive.
  mutating func take() throws(HardwareFault) -> Arrival {
    do throws(TransportError) {
      return .message(
        try link.receive(by: Deadline(afterMilliseconds: 0), wholeWithin: timing.frameMilliseconds))
    } catch {
      switch error {
      case .timedOutWaiting: return .nothing
      case .emptyFrame:
        isAsked = false
        return .fresh
      default: throw .transport(error)
      }
    }
  }

  /// Waits until bytes arrive on the line, or for `other`. Returns which of them happened.
  func wait(
    or other: Connection.Watch, until deadline: Deadline
  ) throws(HardwareFault) -> (hasArrived: Bool, other: Bool) {
    do throws(TransportError) {
      let (hasArrived, other) = try Connection.wait(for: .arrival(on: link.connection), or: other, until: deadline)
      return (hasArrived, other)
    } catch { throw .transport(error) }
  }
}
