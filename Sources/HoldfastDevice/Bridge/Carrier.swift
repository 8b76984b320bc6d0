import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// What a bridge does on the thread that owns the line: it keeps the line open and read, and serves one prover after the other.
struct Carrier {
  private let bridge: Bridge
  /// nil while the line is lost.
  private var line: HardwareLine?
  /// Before it, the line is not opened again: one that ends at once must not keep the bridge busy.
  private var nextOpening: Deadline
  /// Whether the loss of the line was said.
  private var isLossKnown = false
  private var connectionCount: UInt64 = 0

  init(of bridge: Bridge) {
    self.bridge = bridge
    line = bridge.line.withLock { $0 }.map { HardwareLine($0, timing: bridge.timing) }
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

  /// Drops what has come on the line, or serves a prover that has come.
  private mutating func step(_ line: inout HardwareLine) throws(HardwareFault) {
    let (hasArrived, hasRung) = try line.wait(or: .arrival(on: bridge.place.bell), until: .never)
    if hasArrived { _ = try line.take() }
    if hasRung, let prover = bridge.place.next() { try serve(prover, over: &line) }
  }

  private mutating func serve(_ prover: Connection, over line: inout HardwareLine) throws(HardwareFault) {
    connectionCount += 1
    bridge.notify(.connected(connection: connectionCount, prover.peer))
    var relay = Relay(prover: prover, place: bridge.place, timing: bridge.timing)
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

  /// Says whether the prover had its place to the end.
  @discardableResult
  private func end(_ prover: Connection) -> Bool {
    prover.linger(milliseconds: bridge.timing.farewellMilliseconds)
    return bridge.place.leave(prover)
  }

  /// Tries to open the line, at once where it was open for long enough, and tells the provers that come meanwhile.
  private mutating func reopen() {
    waitForOpening()
    guard !bridge.stopFlag.isRaised else { return }
    nextOpening = Deadline(afterMilliseconds: bridge.timing.retryMilliseconds)
    do throws(TransportError) {
      line = HardwareLine(try bridge.openLine(), timing: bridge.timing)
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

  /// Says it once, until the line is back.
  private mutating func sayLost(_ fault: HardwareFault) {
    guard !isLossKnown, !bridge.stopFlag.isRaised else { return }
    isLossKnown = true
    bridge.notify(.hardwareLost(fault))
  }
}

/// The bridge's end of the line, between two losses of it.
struct HardwareLine {
  private var link: DeviceLink
  private let timing: BridgeTiming
  /// Whether an empty frame was sent that was not answered yet: who comes then needs no other.
  private var isAsked = false

  /// What came on the line.
  enum Arrival {
    /// Nothing that counts: a repetition, or bytes that are dropped.
    case nothing
    /// The answer to an empty frame: a fresh challenge follows.
    case fresh
    case message([UInt8])
  }

  init(_ connection: Connection, timing: BridgeTiming) {
    link = DeviceLink(connection)
    self.timing = timing
  }

  /// Asks for a fresh challenge, unless that was done and is not answered yet.
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

  /// Takes what is there.
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

  /// Waits until something is there, or for `other`; says which.
  func wait(
    or other: Connection.Watch, until deadline: Deadline
  ) throws(HardwareFault) -> (hasArrived: Bool, other: Bool) {
    do throws(TransportError) {
      let (hasArrived, other) = try Connection.wait(for: .arrival(on: link.connection), or: other, until: deadline)
      return (hasArrived, other)
    } catch { throw .transport(error) }
  }
}
