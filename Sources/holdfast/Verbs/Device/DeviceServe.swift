import ArgumentParser
import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastHardening
import HoldfastOpenSSL
import HoldfastTransport

struct DeviceServe: Verb {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Answer provers until SIGTERM or Ctrl-C.",
    discussion: "Verdicts go to standard error; --quiet leaves them out. The audit log has them all.")

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "Where to listen, such as unix:/run/lock.sock; may be repeated.")
  var listen: [String]

  @Flag(help: "Say nothing of single rounds.")
  var quiet = false

  @Flag(help: "Let any Bluetooth device pair with this host while it serves, which takes CAP_NET_ADMIN.")
  var pair = false

  mutating func perform() throws(Failure) {
    let endpoints = try listen.map { text throws(Failure) in try Endpoint(argument: text) }
    let dir = try device.folder(because: "the device of an image runs on its board, or in an emulator of it")
    let folder = try DeviceFolder.opened(dir)
    TerminationSignals.hold()
    // A log that nobody reads any more must not end the device.
    signal(SIGPIPE, SIG_IGN)
    // Nor may a terminal that does not let background processes write stop it.
    signal(SIGTTOU, SIG_IGN)
    if Swap.isPossible { Console.warnOfSwap() }
    guard let notices = NoticePipe() else {
      throw Failure(ServerFault.noDescriptors, folder: dir)
    }
    // Whoever ends the server does not wait for a log that nobody reads.
    defer { notices.finish(withinMilliseconds: 500) }
    let isQuiet = quiet
    let server: DeviceServer<SystemRandom, SystemClock>
    do throws(ServerFault) {
      server = try DeviceServer(
        folder: folder, endpoints: endpoints, random: SystemRandom(), clock: SystemClock()
      ) { notice in if let line = notice.line(quiet: isQuiet) { notices.note(line) } }
    } catch { throw Failure(error, folder: dir) }
    TerminationSignals.whenRaised { server.stop() }
    for endpoint in server.endpoints {
      if endpoint.security == .low { notices.note("warning: \(endpoint): links may be unencrypted, as it asks for") }
      notices.note("listening at \(endpoint)")
    }
    let presence = BluetoothPresence(of: server.endpoints, isPairing: pair) { notices.note("warning: \($0)") }
    defer { withExtendedLifetime(presence) {} }
    do throws(ServerFault) { try server.run() } catch { throw Failure(error, folder: dir) }
    notices.note("ended")
  }
}

extension ServerNotice {
  /// What the person who runs the server reads; nil for what is not worth a line.
  fileprivate func line(quiet: Bool) -> String? {
    switch self {
    case .policy(let reading):
      let isSound = reading.fault == nil && reading.warnings.isEmpty
      if isSound && quiet { return nil }
      return "\(isSound ? "" : "warning: ")policy: \(reading.summary)\(reading.warnings)"
    case .answered(let connection, let status):
      return quiet ? nil : "connection \(connection): \(status.name)"
    case .connected, .disconnected: return nil
    case .displaced(let connection):
      return quiet ? nil : "warning: connection \(connection) was ended for another, all places are taken"
    case .busy: return quiet ? nil : "warning: a peer was sent away, all places are taken"
    case .fault(let connection, _): return "warning: connection \(connection): a round could not begin"
    case .ledgerFault: return "warning: the last totals could not be written to the audit log"
    case .acceptFault: return "warning: a peer could not be accepted just now"
    }
  }
}

extension PolicyReading {
  /// What weakens the device, said at every start.
  fileprivate var warnings: String {
    var text = ""
    if policy.acceptsUnsigned {
      text += "; WARNING: unsigned tokens are accepted, so whoever has the public key can make one"
    }
    if policy.allowsCompatibility {
      text += "; WARNING: compatibility rounds are allowed, and who captures one first can change its command"
    }
    return text
  }
}
