import ArgumentParser
import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Synchronization

struct DeviceBridge: Verb {
  static let configuration = CommandConfiguration(
    commandName: "bridge", abstract: "Carry messages between provers and a device on a serial line.",
    discussion: """
      The bridge serves one prover at a time, until SIGTERM or Ctrl-C. It has no key and opens no message: only the device \
      decides what a prover has proved. systemd may pass sockets and is told of the start and the end, as by serve.
      """,
    examples: [
      "holdfast device bridge --to tty:/dev/ttyUSB0 --listen unix:/run/lock.sock",
      """
      holdfast device bridge --to unix-stream:/run/uart.sock \\
      --listen l2cap:00:00:00:00:00:00
      """,
    ])

  @Option(help: "An endpoint to listen at, such as rfcomm:00:00:00:00:00:00; may be repeated.")
  var listen: [String]

  @Option(help: "The serial line of the device, such as tty:/dev/ttyUSB0 or unix-stream:/run/uart.sock.")
  var to: String

  @Flag(help: "Do not log individual provers.")
  var quiet = false

  @Flag(help: "Allow any Bluetooth device to pair with this host while the bridge runs; requires CAP_NET_ADMIN.")
  var pair = false

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let hardware = try Endpoint(argument: to)
    try hardware.refuseAccess(to)
    guard hardware.scheme.isSerial else {
      let forms = Scheme.all.filter(\.isSerial).map(\.form).sorted().joined(separator: " and ")
      throw Failure(.usage, "\(hardware) is not a serial line", hint: "--to accepts \(forms)")
    }
    let places = try ListeningPlaces(listen)
    guard !places.all.contains(hardware) else {
      throw Failure(.usage, "\(hardware) cannot be both ends", hint: "use different endpoints for --listen and --to")
    }
    TerminationSignals.hold()
    // A terminal that does not let background processes write must not stop the bridge.
    signal(SIGTTOU, SIG_IGN)
    guard let lines = LogOutput(json: output.json) else { throw Failure(ServerFault.noDescriptors) }
    defer { lines.finish(withinMilliseconds: 500) }
    let isQuiet = quiet
    // The limit covers all lines that provers cause, because the bridge cannot distinguish strangers.
    let limit = LineLimit(linesAMinute: 30, clock: SystemClock())
    let provers = ServedProver()
    let bridge: Bridge
    do throws(BridgeFault) {
      bridge = try Bridge(endpoints: places.endpoints, listeners: places.listeners, hardware: hardware) { notice in
        if case .connected(_, let peer) = notice { provers.peer = peer }
        guard let line = notice.line(of: provers.peer, quiet: isQuiet, hardware: hardware) else { return }
        limit.admitted(line).forEach(lines.write)
      }
    } catch { throw Failure(error) }
    TerminationSignals.whenRaised {
      ServiceManager.tell(.stopping)
      bridge.stop()
    }
    lines.noteStart()
    for endpoint in bridge.endpoints {
      lines.warnOfAccess(to: endpoint)
      if endpoint.security == .low { lines.warn("\(endpoint): links may be unencrypted, as security=low allows") }
      lines.noteListening(at: endpoint, for: hardware)
    }
    let presence = BluetoothPresence(
      of: bridge.endpoints, isPairing: pair, standing: { bridge.standing(of: $0) }, log: lines)
    defer { withExtendedLifetime(presence) {} }
    Thread.detach {
      while true {
        _ = poll(nil, 0, 10_000)
        limit.due().forEach(lines.write)
      }
    }
    ServiceManager.tell(.ready)
    do throws(BridgeFault) { try bridge.run() } catch { throw Failure(error) }
    limit.due(isEnding: true).forEach(lines.write)
    lines.note("ended", "ended")
  }
}

/// The prover that uses the bridge's only place, or used it last.
private final class ServedProver: Sendable {
  private let state = Mutex<Peer?>(nil)

  var peer: Peer? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

extension BridgeNotice {
  /// Returns the log line for this notice, or nil if it has none. `peer` is the prover with the place.
  fileprivate func line(of peer: Peer?, quiet: Bool, hardware: Endpoint) -> LogLine? {
    guard var line = line(quiet: quiet, hardware: hardware) else { return nil }
    switch self {
    case .disconnected, .refused, .displaced: if let peer { line.add(peer) }
    case .connected, .busy, .hardwareLost, .hardwareBack, .acceptFault: break
    }
    return line
  }

  private func line(quiet: Bool, hardware: Endpoint) -> LogLine? {
    switch self {
    case .connected: return nil
    case .disconnected(let connection, let count):
      return quiet
        ? nil
        : LogLine(
          event: "disconnected", sentence: "connection \(connection): ended after \(count) messages from the device",
          members: [("connection", .number(connection)), ("messages", .number(count))])
    case .refused(let connection, let status):
      return quiet
        ? nil
        : LogLine(
          event: "refused", sentence: "warning: connection \(connection): \(status.name), from the bridge itself",
          members: [("connection", .number(connection)), ("status", .word(status.name))])
    case .displaced(let connection):
      return quiet
        ? nil
        : LogLine(
          event: "displaced",
          sentence:
            "warning: connection \(connection) was ended to make room for another one, as none of its messages had been accepted",
          members: [("connection", .number(connection))])
    case .busy:
      return quiet
        ? nil
        : LogLine(event: "busy", sentence: "warning: a prover was turned away, because another one is being served")
    case .hardwareLost(.silent):
      return LogLine(
        event: "line-lost", sentence: "warning: \(hardware): the device does not answer; the line will be reopened")
    case .hardwareLost(.transport(let error)):
      let message = Failure(line: error, endpoint: hardware).message
      return LogLine(event: "line-lost", sentence: "warning: \(message); the line will be reopened")
    case .hardwareBack: return LogLine(event: "line-back", sentence: "\(hardware): the line is open again")
    case .acceptFault:
      return LogLine(event: "warning", sentence: "warning: a prover could not be accepted")
    }
  }
}

extension Failure {
  fileprivate init(_ fault: BridgeFault) {
    switch fault {
    case .server(let fault): self.init(fault)
    case .hardware(let endpoint, let error): self.init(line: error, endpoint: endpoint)
    }
  }

  /// Creates the failure for a line to a device that cannot be opened or was lost.
  fileprivate init(line error: TransportError, endpoint: Endpoint) {
    switch error {
    case .notFound, .refused:
      self.init(
        .unavailable, "there is nothing at \(endpoint)", hint: "is the device plugged in, or its emulator running?")
    case .closed: self.init(.unavailable, "\(endpoint): the device closed its end")
    case .tooLong, .truncated, .timedOutReading:
      self.init(.unavailable, "\(endpoint): the device sent something that is not a message")
    default: self.init(error, endpoint: endpoint)
    }
  }
}
