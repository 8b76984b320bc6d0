import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization
import TestSupport
import Testing

import HoldfastVault

/// An agent that serves on its own thread, with a clock that the test moves.
private final class RunningAgent {
  let place: TemporaryFolder
  let client: AgentClient
  let seconds: Atomic<Int64>
  let stop: WakeUp
  let forget: WakeUp
  private var thread: Thread?

  private final class Holder: @unchecked Sendable {
    let agent: Agent
    init(_ agent: Agent) { self.agent = agent }
  }

  private final class Seconds: Sendable {
    let now = Atomic<Int64>(1000)
  }
  private let clock: Seconds

  init(idleSeconds: Int = 60, shiftSeconds: Int = 600) throws {
    place = try TemporaryFolder()
    (stop, forget) = (try WakeUp(), try WakeUp())
    client = AgentClient(path: place.file("agent"), timeoutMilliseconds: 60_000)
    seconds = Atomic(0)
    let clock = Seconds()
    self.clock = clock
    let holder = Holder(
      try Agent(
        at: place.file("agent"), idleSeconds: idleSeconds, shiftSeconds: shiftSeconds, clientMilliseconds: 60_000
      ) {
        clock.now.load(ordering: .relaxed)
      })
    let (stop, forget) = (stop, forget)
    thread = try Thread { holder.agent.serve(until: stop, forgettingAt: forget) }
  }

  deinit { end() }

  func end() {
    stop.raise()
    thread = nil
  }

  func advance(_ count: Int64) { clock.now.add(count, ordering: .relaxed) }

  func hold(_ bytes: [UInt8], as name: String) throws { try client.hold(SecretBytes(copying: bytes.span), as: name) }

  func secret(_ name: String) throws -> [UInt8]? {
    guard let secret = try client.secret(name) else { return nil }
    return secret.bytes.array
  }
}

@Suite struct AgentTests {
  @Test func `secrets are held, given, replaced and forgotten by name`() throws {
    let agent = try RunningAgent()
    #expect(try agent.client.names() == [])
    #expect(try agent.secret("pin") == nil)
    try agent.hold([1, 2, 3], as: "pin")
    try agent.hold([4], as: "vault:a")
    #expect(try agent.client.names() == ["pin", "vault:a"])
    #expect(try agent.secret("pin") == [1, 2, 3])
    try agent.hold([9, 9], as: "pin")
    #expect(try agent.secret("pin") == [9, 9])
    #expect(try agent.secret("pi") == nil && agent.secret("pin2") == nil)
    #expect(try agent.client.forget("pin"))
    #expect(try !agent.client.forget("pin"))
    #expect(try agent.secret("pin") == nil && agent.secret("vault:a") == [4])
    try agent.client.forgetAll()
    #expect(try agent.client.names() == [])
  }

  @Test func `secrets and names have limits, and so has their number`() throws {
    let agent = try RunningAgent()
    let largest = [UInt8](repeating: 7, count: 1024)
    try agent.hold(largest, as: String(repeating: "n", count: 64))
    #expect(try agent.secret(String(repeating: "n", count: 64)) == largest)
    for bytes in [[], largest + [7], [UInt8](repeating: 7, count: 8000)] {
      #expect(throws: AgentFault.malformed) { try agent.hold(bytes, as: "x") }
    }
    for name in [String(repeating: "n", count: 65), "a b", "a\n", "é"] {
      #expect(throws: AgentFault.malformed) { try agent.hold([1], as: name) }
    }
    for index in 1..<32 { try agent.hold([UInt8(index)], as: "s\(index)") }
    #expect(throws: AgentFault.full) { try agent.hold([1], as: "onemore") }
    #expect(try agent.secret("s31") == [31])
  }

  @Test func `everything is forgotten after a time without a use, and at the end of a shift`() throws {
    let agent = try RunningAgent(idleSeconds: 60, shiftSeconds: 150)
    try agent.hold([1], as: "a")
    agent.advance(59)
    #expect(try agent.secret("a") == [1])
    agent.advance(59)
    #expect(try agent.secret("a") == [1])
    // Another name is no use.
    agent.advance(31)
    #expect(try agent.secret("b") == nil)
    agent.advance(1)
    #expect(try agent.secret("a") == nil, "the shift is over")
    try agent.hold([2], as: "a")
    agent.advance(60)
    #expect(try agent.client.names() == [])
    #expect(try agent.secret("a") == nil)
  }

  @Test func `a signal to forget comes before requests, and the end removes the socket`() throws {
    let agent = try RunningAgent()
    try agent.hold([1], as: "a")
    agent.forget.raise()
    #expect(try agent.secret("a") == nil)
    try agent.hold([2], as: "a")
    #expect(try agent.secret("a") == [2])
    agent.end()
    #expect(throws: AgentFault.connection(ENOENT)) { _ = try agent.secret("a") }
  }

  @Test func `one agent has a socket, which only its user may use; a stale one is replaced`() throws {
    let agent = try RunningAgent()
    #expect(try agent.place.mode("agent") == 0o600)
    #expect(throws: SystemError(EADDRINUSE)) {
      _ = try Agent(at: agent.client.path, idleSeconds: 1, shiftSeconds: 1)
    }
    try agent.hold([1], as: "a")
    #expect(try agent.secret("a") == [1])
    let path = try agent.place.makeFile("file", [1])
    #expect(throws: SystemError(EADDRINUSE)) { _ = try Agent(at: path, idleSeconds: 1, shiftSeconds: 1) }
    #expect(try agent.place.contents("file") == [1])
    let stale = agent.place.file("stale")
    do {
      let listener = try Socket()
      try listener.bind(to: stale)
    }
    let other = try Agent(at: stale, idleSeconds: 1, shiftSeconds: 1)
    #expect(other.names == [])
  }

  @Test func `silent clients and nonsense hold nobody up`() throws {
    let agent = try RunningAgent()
    try agent.hold([1], as: "a")
    let silent = try (0..<20).map { _ in try Socket(connectedTo: agent.client.path) }
    #expect(try agent.secret("a") == [1])
    for packet in [
      [0], [9, 0], [1], [1, 255], [2, 1], [2, 1, 97, 0], [3, 1, 97], [5, 0, 0], [1, 1, 97], [1, 0, 5],
    ] {
      let socket = try Socket(connectedTo: agent.client.path)
      #expect(socket.exchange(packet.map(UInt8.init)) == [3], "\(packet)")
    }
    var random = TestRandom()
    for _ in 0..<200 {
      var bytes = [UInt8](repeating: 0, count: 40)
      var span = bytes.mutableSpan
      try random.fill(&span)
      // Nothing that begins like a request.
      bytes[0] |= 0x10
      #expect(try Socket(connectedTo: agent.client.path).exchange(bytes) == [3])
    }
    #expect(try Socket(connectedTo: agent.client.path).exchange([UInt8](repeating: 1, count: 5000)) == [3])
    #expect(try agent.secret("a") == [1])
    #expect(silent.count == 20)
  }
}

/// A bare socket of packets.
private final class Socket {
  let descriptor: Descriptor

  init() throws { descriptor = try Descriptor(taking: socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue), 0)) }

  convenience init(connectedTo path: String) throws {
    try self.init()
    try unsafe name(path) { unsafe connect(descriptor.number, $0, $1) }
  }

  func bind(to path: String) throws { try unsafe name(path) { unsafe Glibc.bind(descriptor.number, $0, $1) } }

  /// Sends a packet and returns the answer.
  func exchange(_ packet: [UInt8]) -> [UInt8] {
    var answer = [UInt8](repeating: 0, count: 64)
    guard unsafe send(descriptor.number, packet, packet.count, CInt(MSG_NOSIGNAL)) == packet.count else { return [] }
    let count = unsafe recv(descriptor.number, &answer, answer.count, 0)
    return Array(answer[..<max(count, 0)])
  }

  private func name(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) throws {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    try unsafe withUnsafePointer(to: &address) { address in
      try unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        _ = try retrying { unsafe body(address, socklen_t(MemoryLayout<sockaddr_un>.size)) }
      }
    }
  }
}

/// The changes of a vault that an app is told of without asking.
@Suite struct PresenceTests {
  @Test(.timeLimit(.minutes(5))) func `an app is told when its vault is locked, unlocked and wiped`() async throws {
    let made = try TestVault(attemptLimit: 3)
    let agent = try RunningAgent()
    let path = agent.client.path
    var presences = made.vault.presences(agent: path).makeAsyncIterator()
    #expect(try await presences.next() == .locked)
    try agent.hold([1], as: "other")
    try agent.hold([UInt8](repeating: 7, count: 32), as: try made.vault.status().heldName)
    #expect(try await presences.next() == .unlocked)
    #expect(try made.vault.presence(agent: path) == .unlocked)
    #expect(try made.vault.presence() == .locked)
    agent.forget.raise()
    #expect(try await presences.next() == .locked)
    for _ in 0..<3 { _ = made.fault(of: wrongPasscode) }
    #expect(try await presences.next() == .wiped)
    _ = try made.vault.create(passcode: try passcode(rightPasscode), keyFile: nil)
    // It depends on chance which steps of a creation or a wiping are seen.
    while let presence = try await presences.next(), presence != .locked { #expect(presence == .missing) }
    try made.vault.wipe()
    while let presence = try await presences.next(), presence != .missing { #expect(presence == .wiped) }
  }

  @Test func `without a vault nothing is unlocked, and a reader that is cancelled ends`() async throws {
    let place = try TemporaryFolder()
    let vault = Vault(path: place.file("v"), environment: TestHost().environment)
    #expect(try vault.presence(agent: place.file("none")) == .missing)
    let reader = Task { for try await _ in vault.presences() {} }
    reader.cancel()
    try await reader.value
  }
}
