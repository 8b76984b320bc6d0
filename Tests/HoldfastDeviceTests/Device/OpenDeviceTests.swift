import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

/// A device as a library: sessions over connections of one's own, keys, transports and actuators of other types.
@Suite struct OpenDeviceTests {
  private let device: TestDevice

  init() throws {
    device = try TestDevice()
    device.clock.seconds = testTime
  }

  @Test func `a session needs no socket: messages in, messages out`() throws {
    let open = try device.opened()
    var session = try open.session(actuator: LockActuator(device.lock))
    let prover = try device.prover()
    for _ in 0..<3 {
      let answer = try prover.answer(try session.challenge(), command: "unlock")
      let reply = session.respond(to: answer.message.span, waitedMilliseconds: 0)
      #expect(reply.outcome.status == .accepted)
      #expect(try prover.open(reply.message, after: answer).result == "unlocked")
    }
    #expect(device.lock.current == .unlocked)
  }

  @Test func `an answer counts once, and only after a challenge`() throws {
    let open = try device.opened()
    var session = try open.session(actuator: LockActuator(device.lock))
    let prover = try device.prover()
    let answer = try prover.answer(try session.challenge(), command: "unlock")
    #expect(session.respond(to: answer.message.span, waitedMilliseconds: 0).outcome.status == .accepted)
    let again = session.respond(to: answer.message.span, waitedMilliseconds: 0)
    #expect(again.outcome.status == .challengeExpired)
    #expect(try VerdictMessage(again.message.span).status == .challengeExpired)
    var fresh = try open.session(actuator: LockActuator(device.lock))
    #expect(fresh.respond(to: answer.message.span, waitedMilliseconds: 0).outcome.status == .challengeExpired)
    _ = try fresh.challenge()
    #expect(fresh.respond(to: answer.message.span, waitedMilliseconds: 30_001).outcome.status == .challengeExpired)
  }

  @Test(arguments: [0, 1, 4096, 4097]) func `a message of any length is answered`(byteCount: Int) throws {
    var session = try device.opened().session(actuator: LockActuator(device.lock))
    _ = try session.challenge()
    let reply = session.respond(to: [UInt8](repeating: 0xff, count: byteCount).span, waitedMilliseconds: 0)
    #expect(reply.outcome.status == .malformed)
    #expect(reply.outcome.closesConnection)
    #expect(try VerdictMessage(reply.message.span).status == .malformed)
  }

  @Test func `two sessions at once never have the same challenge`() throws {
    let open = try device.opened()
    var first = try open.session(actuator: LockActuator(device.lock))
    var second = try open.session(actuator: LockActuator(device.lock))
    var challenges: Set<[UInt8]> = []
    for _ in 0..<4 {
      challenges.insert(try first.challenge())
      challenges.insert(try second.challenge())
    }
    #expect(challenges.count == 8)
  }

  @Test func `a device is open once, and closed it can be opened again`() throws {
    let open = try device.opened()
    #expect(throws: DeviceFolderFault.folder(FileError(.locked, at: device.folder.path))) { try device.opened() }
    open.close()
    open.close()
    let again = try device.opened()
    #expect(throws: DeviceFault.store) { _ = try open.session(actuator: Pump()) }
    _ = again
  }

  @Test func `only a device that made a session has started, and its end is recorded`() throws {
    try device.opened().close()
    #expect(try device.ledger.summary().bootCount == 0)
    let open = try device.opened()
    _ = try open.session(actuator: LockActuator(device.lock))
    _ = try open.session(actuator: LockActuator(device.lock))
    open.close()
    #expect(try device.ledger.summary().bootCount == 1)
    #expect(try device.ledger.auditEntries(limit: 100).map(\.event).last == .stopped)
  }

  @Test func `a policy that changes between two messages applies to the second`() throws {
    let open = try device.opened()
    var session = try open.session(actuator: LockActuator(device.lock))
    let prover = try device.prover()
    let answer = try prover.answer(try session.challenge(), command: "unlock")
    try device.folder.write(.denyAll)
    #expect(session.respond(to: answer.message.span, waitedMilliseconds: 0).outcome.status == .commandRefused)
    #expect(device.lock.current == .locked)
  }

  @Test func `a challenge names the factors of a policy that is at most 100 ms old`() throws {
    let open = try device.opened()
    var session = try open.session(actuator: LockActuator(device.lock))
    let atFirst = try session.challenge()
    try device.folder.write(.denyAll)
    device.clock.advance(milliseconds: 99)
    let after99 = try session.challenge()
    device.clock.advance(milliseconds: 1)
    let after100 = try session.challenge()
    let factors = DevicePolicy.forSimulatedLock.commonFactors
    #expect(!factors.isEmpty)
    #expect(try Challenge(atFirst.span).required == factors)
    #expect(try Challenge(after99.span).required == factors)
    #expect(try Challenge(after100.span).required == [])
  }

  @Test func `a machine of another type carries the commands out, and its failure is no denial`() throws {
    let pump = Pump()
    let open = try device.opened()
    var session = try open.session(actuator: pump)
    let prover = try device.prover()
    func round(_ command: String) throws -> TestVerdict {
      let answer = try prover.answer(try session.challenge(), command: command)
      return try prover.open(session.respond(to: answer.message.span, waitedMilliseconds: 0).message, after: answer)
    }
    #expect(try round("unlock").result == "1")
    #expect(try round("status").status == .internal)
    #expect(try round("unlock").result == "2")
  }

  @Test func `each round is reported with what the ledger recorded of it, and as the repetition that it may be`() throws
  {
    let notices = NoticeLog<ServerNotice>()
    let open = try OpenDevice(
      folder: device.folder, keys: try device.folder.secrets(), random: SystemRandom(), clock: device.clock,
      notify: { notices.add($0) })
    var session = try open.session(actuator: LockActuator(device.lock))
    let prover = try device.prover()
    for (number, flaws) in [(1, []), (1, []), (2, .wrongIntegrity)] as [(UInt64, Flaws)] {
      let answer = try prover.answer(try session.challenge(), command: "lock", flaws: flaws, number: number)
      _ = session.respond(to: answer.message.span, waitedMilliseconds: 0)
    }
    let rounds = notices.all.compactMap { notice -> AuditedRound? in
      if case .judged(let judged) = notice { judged.round } else { nil }
    }
    #expect(rounds.map(\.status) == [.accepted, .accepted, .integrityMismatch])
    #expect(rounds.map(\.isRepetition) == [false, true, false])
  }

  @Test func `a repetition that comes while its command is carried out is busy, and the command is carried out once`()
    throws
  {
    let machine = InterruptedMachine()
    let (open, prover) = (try device.opened(), try device.prover())
    func round(_ number: UInt64) throws -> Status {
      var session = try open.session(actuator: machine)
      let answer = try prover.answer(try session.challenge(), command: "unlock", number: number)
      return try prover.open(session.respond(to: answer.message.span, waitedMilliseconds: 0).message, after: answer)
        .status
    }
    for number in 1...2 as ClosedRange<UInt64> {
      var meanwhile: Status?
      machine.meanwhile = { meanwhile = try? round(number) }
      #expect(try round(number) == .accepted)
      #expect(meanwhile == .busy)
      #expect(try round(number) == .accepted)
      #expect(machine.count == number)
    }
  }

  @Test func `a key of one's own, which is not in the folder`() throws {
    let key = OwnKey(byte: 9)
    var random = TestRandom(state: 5)
    let path = device.place.file("own")
    let folder = try DeviceFolder.create(
      at: path, publicPoint: key.publicPoint, policy: .forSimulatedLock, random: &random, clock: device.clock)
    #expect(throws: (any Error).self) { try folder.secrets() }
    try folder.openLedger().trust(.signing(device.issuer.point), realClock: testTime)
    let again = try DeviceFolder.open(at: path)
    #expect(!again.hasKey)
    #expect(throws: DeviceFolderFault.file(.key, .otherDevice)) {
      _ = try OpenDevice(folder: again, keys: OwnKey(byte: 8), random: SystemRandom(), clock: device.clock)
    }
    let open = try OpenDevice(folder: again, keys: key, random: SystemRandom(), clock: device.clock)
    var session = try open.session(actuator: LockActuator(try again.openLock()))
    let claims = TestClaims(for: again.descriptor.deviceID)
    let prover = TestProver(claims, token: try device.issuer.token(claims, to: key.publicPoint, flaws: TokenFlaws()))
    let answer = try prover.answer(try session.challenge(), command: "unlock")
    let reply = session.respond(to: answer.message.span, waitedMilliseconds: 0)
    #expect(try prover.open(reply.message, after: answer).status == .accepted)
    #expect(key.useCount > 0)
  }

  @Test func `a key that fails ends the round with a fault, and nothing is acted upon`() throws {
    let key = OwnKey(byte: 9, fails: true)
    var random = TestRandom(state: 5)
    let folder = try DeviceFolder.create(
      at: device.place.file("own"), publicPoint: key.publicPoint, policy: .forSimulatedLock, random: &random,
      clock: device.clock)
    let open = try OpenDevice(folder: folder, keys: key, random: SystemRandom(), clock: device.clock)
    #expect(throws: DeviceFault.cryptography) { _ = try open.session(actuator: Pump()) }
  }

  @Test func `a transport of one's own is served, until its listener is stopped`() throws {
    let exchange = try TestExchange()
    let server = try DeviceServer(
      try device.opened(), actuator: LockActuator(device.lock), at: [], listeners: [exchange])
    let thread = try HoldfastLinux.Thread { try? server.run() }
    let prover = try device.prover()
    let peers = try (0..<3).map { _ in TestPeer(try exchange.connect()) }
    for peer in peers { #expect(try peer.round(prover).status == .accepted) }
    // The next challenge is on its way: it comes before the end.
    for peer in peers { _ = try peer.challenge() }
    server.stop()
    for peer in peers { peer.expectEnd() }
    thread.join()
    #expect(exchange.isClosed)
  }

  @Test func `the challenges of peers follow from the order in which they came`() throws {
    try device.copyFolder(to: "copy")
    var challenges: [[[UInt8]]] = []
    for _ in 0..<2 {
      let served = try ServedDevice(device)
      let peers = try (0..<16).map { _ in try served.connect() }
      challenges.append(try peers.map { try $0.challenge() })
      try served.stop()
      try device.restoreFolder(from: "copy")
    }
    #expect(challenges[0] == challenges[1])
    #expect(Set(challenges[0]).count == 16)
  }

  @Test func `a listener that ends stops the server with its error`() throws {
    let exchange = try TestExchange()
    let server = try DeviceServer(
      try device.opened(), actuator: LockActuator(device.lock), at: [], listeners: [exchange])
    exchange.end()
    #expect(throws: ServerFault.listener(.closed)) { try server.run() }
  }

  @Test func `one connection is served without a server, until the peer ends it`() throws {
    let (ours, theirs) = try Connection.pair()
    let open = try device.opened()
    let lock = LockActuator(device.lock)
    let thread = try HoldfastLinux.Thread { try? open.serve(ours, actuator: lock) }
    let peer = TestPeer(theirs)
    let prover = try device.prover()
    #expect(try peer.round(prover).status == .accepted)
    #expect(try peer.round(prover, flaws: .wrongIntegrity).status == .integrityMismatch)
    theirs.shutdown()
    thread.join()
  }
}

/// A machine that counts, and does not know every command.
private final class Pump: Actuator {
  private let count = Mutex(0)

  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    guard request.command.bytes.elementsEqual("unlock") else { throw ActuatorFailure() }
    let number = count.withLock { count in
      count += 1
      return count
    }
    do throws(EncodingFault) { try result.append(Array("\(number)".utf8).span) } catch { throw ActuatorFailure() }
  }
}

/// A machine that counts its commands, and does what a test says while it carries out the next one.
private final class InterruptedMachine: Actuator {
  var meanwhile: (() -> Void)?
  private(set) var count: UInt64 = 0

  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    count += 1
    let work = meanwhile
    meanwhile = nil
    work?()
  }
}

/// A key that is kept elsewhere, and counts its uses.
private final class OwnKey: DeviceKeys {
  private let scalar: Secret<32>
  private let fails: Bool
  private let uses = Atomic(0)
  let publicPoint: P256Point

  init(byte: UInt8, fails: Bool = false) {
    scalar = secret([UInt8](repeating: byte, count: 32))
    publicPoint = try! P256PrivateKey(scalar: scalar).publicPoint
    self.fails = fails
  }

  var useCount: Int { uses.load(ordering: .relaxed) }

  func key() throws(CryptographyFailure) -> Handle {
    if fails { throw CryptographyFailure() }
    return Handle(key: try P256PrivateKey(scalar: scalar), owner: self)
  }

  struct Handle: AgreementKey, ~Copyable {
    var key: P256PrivateKey
    let owner: OwnKey
    var publicPoint: P256Point { key.publicPoint }

    mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
      owner.uses.add(1, ordering: .relaxed)
      try key.agree(with: peer, into: &shared)
    }
  }
}

/// A transport of another type: pairs of connected ends, handed over within this process.
private final class TestExchange: ChannelListener {
  private let waiting = Mutex<[Connection]>([])
  private let arrival: WakeUp
  private let isEnded = Atomic(false)
  private let isStopped = Atomic(false)
  private let hasClosed = Atomic(false)

  init() throws { arrival = try WakeUp() }

  var isClosed: Bool { hasClosed.load(ordering: .relaxed) }

  func connect() throws -> Connection {
    let (device, prover) = try Connection.pair()
    waiting.withLock { $0.append(device) }
    arrival.raise()
    return prover
  }

  func end() {
    isEnded.store(true, ordering: .relaxed)
    arrival.raise()
  }

  func acceptChannel() throws(TransportError) -> any MessageChannel {
    while true {
      if isStopped.load(ordering: .relaxed) { throw .cancelled }
      if isEnded.load(ordering: .relaxed) { throw .closed }
      if let next = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return OwnChannel(next) }
      arrival.wait(milliseconds: nil)
      _ = arrival.lower()
    }
  }

  func cancel() {
    isStopped.store(true, ordering: .relaxed)
    arrival.raise()
  }

  func close() { hasClosed.store(true, ordering: .relaxed) }
}

/// A channel with only what the protocol requires.
private final class OwnChannel: MessageChannel {
  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  func receive(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> ReceivedMessage {
    try connection.receive(by: deadline, wholeWithin: wholeMilliseconds)
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    try connection.send(message, by: deadline)
  }

  func shutdown() { connection.shutdown() }
}
