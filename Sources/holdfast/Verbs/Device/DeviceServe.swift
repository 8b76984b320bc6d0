import ArgumentParser
import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import HoldfastVersion

struct DeviceServe: Verb {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Serve provers until SIGTERM or Ctrl-C.",
    discussion: """
      Each event is a line on standard error, or with --json a JSON object on standard output. Peers that prove nothing and \
      denied rounds of the same token are logged once and then counted, with one line per minute for all of them. The audit \
      log contains the accepted rounds, and totals of the others.

      systemd may pass the socket of unix:PATH (ListenSequentialPacket=PATH) and is told of the start and the end (Type=notify).
      """,
    examples: [
      "holdfast device serve --dir lock --listen unix:/run/lock.sock",
      """
      holdfast device serve --dir lock --listen unix:/run/lock.sock \\
      --actuator exec:/usr/local/bin/bolt --actuator-timeout 500
      """,
      """
      holdfast device serve --dir lock --pair \\
      --listen rfcomm:00:00:00:00:00:00 --listen le:00:00:00:00:00:00,psm=0x80
      """,
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Option(
    help:
      "An endpoint to listen at, such as unix:/run/lock.sock or unix:/run/lock.sock,mode=660,group=lock; may be repeated."
  )
  var listen: [String]

  @Option(
    help: """
      The actuator that carries out commands, instead of a simulated lock: exec:PATH or lines:PATH, a program that is \
      started, or unix:PATH, a socket.
      """)
  var actuator: String?

  @Option(help: "The time that the actuator may take for a command, in milliseconds: 100 to 8000; by default 2000.")
  var actuatorTimeout: Int?

  @Flag(help: "Do not log individual rounds.")
  var quiet = false

  @Flag(
    help: "Log every answer, even to peers that prove nothing; only for a laboratory, as strangers could fill the disk."
  )
  var verbose = false

  @Flag(help: "Allow any Bluetooth device to pair with this host while it serves; requires CAP_NET_ADMIN.")
  var pair = false

  mutating func perform() throws(Failure) {
    let places = try ListeningPlaces(listen)
    let external = try externalActuator()
    let dir = try device.folder(because: "the device in an image runs on its board, or in an emulator of the board")
    let folder = try DeviceFolder.opened(dir)
    guard folder.hasKey else {
      throw Failure(
        .malformed, "the key of the device in \(dir) is not in its folder",
        hint: "the program that holds the key serves it, with the library HoldfastDevice")
    }
    TerminationSignals.hold()
    // The end of the log's reader must not end the device.
    signal(SIGPIPE, SIG_IGN)
    // A terminal that does not let background processes write must not stop the device.
    signal(SIGTTOU, SIG_IGN)
    if Swap.isPossible { Console.warnOfSwap() }
    guard let lines = LogOutput(json: output.json) else { throw Failure(ServerFault.noDescriptors, folder: dir) }
    // The end of the server must not wait for a log without a reader.
    defer { lines.finish(withinMilliseconds: 500) }
    let log = ServingLog(to: lines, device: folder.descriptor.deviceID, quiet: quiet, verbose: verbose)
    let device = try opened(folder, log: log)
    // Nobody else has the device open, so a run that has not ended was cut off.
    if let summary = try? device.ledger.summary(), summary.hasUnfinishedRun {
      lines.warn("the last run did not end in order: the process was killed or crashed, or the host went down")
    }
    guard let external else {
      let lock = try simulatedLock(of: folder)
      return try serve(device, by: LockActuator(lock), named: "the simulated lock", at: places, lines, log)
    }
    let actuator = try ExternalActuator.started(
      at: external, timeoutMilliseconds: actuatorTimeout ?? ExternalActuator.usualTimeoutMilliseconds, log: lines)
    defer { actuator.stop() }
    let client = ActuatorClient(actuator) { event in
      // If this fails, only the event is lost: the round is recorded.
      try? device.ledger.record(.actuatorEvent(event), realClock: SystemClock().unixSeconds())
    }
    try serve(device, by: client, named: external.description, at: places, lines, log)
  }

  /// Reads the options of the actuator; nil for the simulated lock.
  private func externalActuator() throws(Failure) -> ActuatorAddress? {
    let range = ExternalActuator.timeoutRange
    if let actuatorTimeout, !range.contains(actuatorTimeout) {
      throw Failure(.usage, "--actuator-timeout is from \(range.lowerBound) to \(range.upperBound) milliseconds")
    }
    guard let actuator else {
      guard actuatorTimeout == nil else { throw Failure(.usage, "--actuator-timeout needs --actuator") }
      return nil
    }
    guard let address = ActuatorAddress(actuator) else {
      throw Failure(.usage, "--actuator is exec:PATH, lines:PATH or unix:PATH")
    }
    return address
  }

  private func serve<Machine: Actuator & Sendable>(
    _ device: OpenDevice<DeviceSecrets, SystemRandom, SystemClock>, by actuator: Machine, named name: String,
    at places: ListeningPlaces, _ lines: LogOutput, _ log: ServingLog
  ) throws(Failure) {
    try device.folder.checkCommands(of: actuator, named: name, device.ledger)
    let dir = device.folder.path
    let server: DeviceServer<Machine, DeviceSecrets, SystemRandom, SystemClock>
    do throws(ServerFault) {
      server = try DeviceServer(device, actuator: actuator, at: places.endpoints, listeners: places.listeners)
    } catch { throw Failure(error, folder: dir) }
    TerminationSignals.whenRaised {
      ServiceManager.tell(.stopping)
      server.stop()
    }
    lines.noteStart(of: device.folder.descriptor.deviceID)
    for endpoint in server.endpoints {
      lines.warnOfAccess(to: endpoint)
      if endpoint.security == .low { lines.warn("\(endpoint): links may be unencrypted, as security=low allows") }
      lines.noteListening(at: endpoint)
    }
    let presence = BluetoothPresence(
      of: server.endpoints, isPairing: pair, standing: { server.standing(of: $0) }, log: lines)
    defer { withExtendedLifetime(presence) {} }
    log.startReporting()
    ServiceManager.tell(.ready)
    do throws(ServerFault) { try server.run() } catch { throw Failure(error, folder: dir) }
    log.finish()
    lines.note("ended", "ended")
  }
}

/// Opens the device.
private func opened(
  _ folder: DeviceFolder, log: ServingLog
) throws(Failure) -> OpenDevice<DeviceSecrets, SystemRandom, SystemClock> {
  do throws(DeviceFolderFault) {
    return try OpenDevice(folder: folder, random: SystemRandom(), clock: SystemClock()) { log.take($0) }
  } catch { throw Failure(error, folder: folder.path) }
}

/// Opens the device's lock as it stands from then on.
private func simulatedLock(of folder: DeviceFolder) throws(Failure) -> SimulatedLock {
  do throws(DeviceFolderFault) { return try folder.openLock() } catch { throw Failure(error, folder: folder.path) }
}

extension LogOutput {
  func warnOfAccess(to endpoint: Endpoint) {
    if endpoint.isForEverybody {
      warn("\(endpoint): every user of this host may connect, as its mode allows")
    }
  }

  /// Writes the first line: the program's version, and the device that it serves.
  func noteStart(of device: DeviceID? = nil) {
    var line = LogLine(event: "started", sentence: "started")
    line.fields = [("version", .text(HoldfastVersion.description))]
    if let device { line.fields.append(("device_id", .word(hexadecimal(device)))) }
    write(line)
  }

  func noteListening(at endpoint: Endpoint, for hardware: Endpoint? = nil) {
    let device = hardware.map { ", for the device at \($0)" } ?? ""
    var line = LogLine(event: "listening", sentence: "listening at \(endpoint)\(device)")
    line.members = [("endpoint", .text(endpoint.description))]
    if let hardware { line.members.append(("hardware", .text(hardware.description))) }
    write(line)
  }
}

/// The log of a server's notices. It also reports in time the events that were only counted.
private final class ServingLog: Sendable {
  private let output: LogOutput
  private let device: DeviceID
  private let isQuiet: Bool
  private let log: ServerLog<SystemClock>

  init(to output: LogOutput, device: DeviceID, quiet: Bool, verbose: Bool) {
    (self.output, self.device, isQuiet) = (output, device, quiet)
    log = ServerLog(clock: SystemClock(), isComplete: verbose)
  }

  func take(_ notice: ServerNotice) {
    write(log.entries(for: notice))
  }

  /// Starts to check regularly whether a report is due. The checks end with the process.
  func startReporting() {
    Thread.detach { [self] in
      while true {
        _ = poll(nil, 0, 10_000)
        write(log.dueEntries())
      }
    }
  }

  /// Writes all events that were only counted.
  func finish() { write(log.dueEntries(isEnding: true)) }

  private func write(_ entries: [ServerLogEntry]) {
    for entry in entries {
      if let line = entry.line(quiet: isQuiet, device: device) { output.write(line) }
    }
  }
}
