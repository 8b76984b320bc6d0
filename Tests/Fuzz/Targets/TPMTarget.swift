import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport

/// The responses of a TPM: one by itself, and several from a socket, where the device sends commands about its counter and its key.
let tpmTarget = FuzzTarget(
  "tpm",
  [
    "HoldfastDevice/Anchor/TPM.swift", "HoldfastDevice/Anchor/TPMConnection.swift",
    "HoldfastDevice/Anchor/TPMKey+Commands.swift",
  ], maximumByteCount: 512, variantCount: 16
) { bytes in
  if bytes.first == 0xff { return try useTPM(FuzzInput(Array(bytes.dropFirst()))) }
  if bytes.count >= TPMResponse.headByteCount, let count = TPMResponse.byteCount(of: bytes.span) {
    try require((10...64).contains(count), "a response of a TPM has an impossible length")
  }
  switch try TPMResponse(bytes.span) {
  case .success(let parameters):
    note([UInt8](parameters))
    try require(parameters.count <= 64, "a response of a TPM is too long")
  case .failure(let code):
    note("\(code.rawValue)")
    try require(code.rawValue != 0, "a success of a TPM is a failure")
    _ = (code.wantsRetry, code.fault(isOwners: true), code.fault(isOwners: false))
  }
}

/// Uses a counter or a key in a TPM that gives the responses of the input.
private func useTPM(_ input: FuzzInput) throws {
  var input = input
  let kind = input.byte()
  var responses: [[UInt8]] = []
  while !input.isEmpty, responses.count < 16 { responses.append(input.message()) }
  let tpm = try ScriptedTPM(responses)
  defer { for command in tpm.commands() { note(command) } }
  let counter = CounterPlace(tpm: tpm.path, deviceID: DeviceID())!
  let key = TPMKeyPlace(tpm: tpm.path, deviceID: DeviceID())!
  let (counters, keys) = (CounterOperations.tpm, TPMKeyOperations.tpm)
  switch kind % 7 {
  case 0: _ = try RollbackCounter(counter, authorization: Secret(), operations: counters).define()
  case 1:
    let value = try counters.read(counter, Secret())
    // Before the value, there are only requests for the same command again.
    let answer = responses.first { $0.count > TPMResponse.headByteCount } ?? []
    let sent = answer.dropFirst(16).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    try require(value == sent, "the value of a counter is not what the TPM sent")
  case 2: try counters.increment(counter, Secret())
  case 3: try counters.undefine(counter)
  case 4:
    let point = try keys.make(key, Secret(), FixedBytes())
    try require(point.bytes[0] == 4, "the point of a key in a TPM is not one")
  case 5:
    var shared = Secret<32>()
    try keys.agree(key, Secret(), Signer.point, &shared)
    note(shared.withBytes { [UInt8]($0) })
  default: try keys.remove(key)
  }
}

/// A TPM behind a Unix socket that gives one response to each command. A peer that waits for more than it sends finds the connection closed.
private final class ScriptedTPM {
  let path: String
  private let folder: TemporaryFolder
  private let stop: WakeUp
  private let thread: Thread
  private let received = CommandLog()

  /// Ends, and returns the commands that came.
  func commands() -> [[UInt8]] {
    stop.raise()
    thread.join()
    return received.commands.withLock { $0 }
  }

  init(_ responses: [[UInt8]]) throws {
    folder = try TemporaryFolder()
    path = folder.file("tpm")
    let socket = try OpenFile.unixSocket(framing: .stream)
    guard socket.bind(toPath: path) == 0 else { throw TransportError(errno: errno) }
    try socket.listen(backlog: 16)
    let stop = try makeWakeUp()
    self.stop = stop
    thread = try Thread { [received] in
      var rest = responses[...]
      while (try? socket.wait(for: POLLIN, until: .never, unless: stop)) == .ready,
        let peer = try? socket.acceptPeer()
      {
        while let command = command(of: peer, unless: stop) {
          received.commands.withLock { $0.append(command) }
          guard let response = rest.popFirst(), send(response, to: peer) else { break }
        }
      }
    }
  }

  deinit {
    stop.raise()
    thread.join()
  }
}

private final class CommandLog: Sendable {
  let commands = Mutex<[[UInt8]]>([])
}

/// Waits for a command. Returns nil if the peer has closed the connection. What came before the stop is a command, too.
private func command(of peer: OpenFile, unless stop: WakeUp) -> [UInt8]? {
  _ = try? peer.wait(for: POLLIN, until: .never, unless: stop)
  var command = [UInt8](repeating: 0, count: 256)
  let count = recv(peer.descriptor, &command, command.count, CInt(MSG_DONTWAIT))
  return count > 0 ? Array(command[..<count]) : nil
}

/// Sends a response. Returns whether it has the length that its head gives, so that the peer can send another command.
private func send(_ response: [UInt8], to peer: OpenFile) -> Bool {
  let count = Glibc.send(peer.descriptor, response, response.count, CInt(MSG_NOSIGNAL))
  guard count == response.count else { return false }
  return response.count >= TPMResponse.headByteCount
    && response[2..<6].reduce(0) { $0 << 8 | Int($1) } == response.count
}
