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
