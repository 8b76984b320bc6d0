import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastProver

/// Changes that an app is told of, and the call that enrols first where it is necessary.
@Suite struct EventsTests {
  private let place: TemporaryFolder
  private let lock: TestLock
  private let mark = Mark()

  /// The host's secret and clock, which the test changes.
  private final class Mark: Sendable {
    let digest = Mutex<Digest?>(Digest(filledWith: 1))
    let clock = Mutex<UInt64>(1_790_000_000)
  }

  init() throws {
    place = try TemporaryFolder()
    lock = try TestLock()
  }

  private var prover: Prover {
    var prover = Prover(state: place.file("phone"), keys: .default)
    let mark = mark
    prover.host.secretMark = { mark.digest.withLock { $0 } }
    prover.host.unixSeconds = { mark.clock.withLock { $0 } }
    return prover
  }

  private var device: DeviceID { lock.descriptor.deviceID }

  private func enroll(replacing: Bool = false) throws {
    try prover.enroll(for: lock.descriptor, replacing: replacing) { try lock.token(for: $0) }
  }

  @Test func `what has changed since a moment is told once, whoever changed it`() throws {
    let none = try prover.moment()
    #expect(try prover.changes(since: none).events == [])
    try enroll()
    let (events, enrolled) = try prover.changes(since: none)
    #expect(events == [.enrolled(device)])
    #expect(try prover.changes(since: enrolled).events == [])
    try enroll(replacing: true)
    let again = try prover.changes(since: enrolled)
    #expect(again.events == [.enrolled(device)])
    mark.digest.withLock { $0 = Digest(filledWith: 2) }
    let foreign = try prover.changes(since: again.moment)
    #expect(foreign.events == [.hostSecretChanged])
    let file = try #require(try prover.folder.entries().first).folder.file("measurement_token.cose")
    let whole = try Files.readFile(at: file, limit: 4096)
    try Files.writeFileAtomically(Array(whole.dropLast()), at: file, overwrite: true)
    let damaged = try prover.changes(since: foreign.moment)
    #expect(damaged.events == [.validityChanged(device, .damaged)])
    try Files.writeFileAtomically(whole, at: file, overwrite: true)
    let other = try TestLock(id: 8)
    try prover.enroll(for: other.descriptor) { try other.token(for: $0) }
    try prover.unenroll(device)
    #expect(
      try prover.changes(since: again.moment).events
        == [.hostSecretChanged, .removed(device), .enrolled(other.descriptor.deviceID)])
    try prover.wipe()
    let gone = try prover.changes(since: again.moment).events
    #expect(gone == [.hostSecretChanged, .removed(device), .wiped])
  }

  @Test(.timeLimit(.minutes(5))) func `events come without being asked for, and end with their reader`() async throws {
    let prover = prover
    let (device, descriptor, lock) = (device, lock.descriptor, lock)
    var events = prover.events(since: try prover.moment()).makeAsyncIterator()
    try prover.enroll(for: descriptor) { try lock.token(for: $0) }
    #expect(try await events.next() == .enrolled(device))
    try prover.wipe()
    #expect(try await events.next() == .removed(device))
    #expect(try await events.next() == .wiped)
    // The folder is gone, and comes again.
    try prover.enroll(for: descriptor) { try lock.token(for: $0) }
    #expect(try await events.next() == .enrolled(device))
    let reader = Task { for try await _ in prover.events() {} }
    reader.cancel()
    try await reader.value
  }

  @Test func `a folder of another kind ends the events with an error`() async throws {
    try Files.createPrivateDirectory(at: place.file("phone"))
    try place.makeFile("phone/vault.key", [0])
    await #expect(throws: ProverError.self) { for try await _ in prover.events() {} }
  }

  /// Proves through the call that enrols if necessary, and returns the stages.
  private func proveAtOnce(_ exchanges: borrowing Mutex<Int>) throws -> [ProofStage] {
    let (ours, theirs) = try Connection.pair()
    let thread = try lock.serve([theirs])
    defer {
      ours.shutdown()
      thread.join()
    }
    let stages = Mutex<[ProofStage]>([])
    var exchangeCount = 0
    let outcome = try prover.prove(
      Request(command: "status"), over: TestChannel(ours), enrollingFor: lock.descriptor,
      options: ProofOptions(progress: { stage in stages.withLock { $0.append(stage) } })
    ) { evidence in
      exchangeCount += 1
      return try lock.token(for: evidence)
    }
    exchanges.withLock { $0 += exchangeCount }
    #expect(outcome.verdict.isAuthenticated && outcome.verdict.status == .accepted)
    return stages.withLock { $0 }
  }

  @Test func `one call enrols only if it is necessary, and proves`() throws {
    let exchanges = Mutex(0)
    let proof: [ProofStage] = [.measuring, .connecting, .proving(device), .waiting(device)]
    #expect(try proveAtOnce(exchanges) == [.enrolling(device)] + proof)
    // The device in memory is a new one, and may ask for the whole token.
    #expect(try Array(proveAtOnce(exchanges).prefix(4)) == proof)
    #expect(exchanges.withLock { $0 } == 1)
    let entry = try #require(try prover.folder.entries().first)
    try Files.removeFile(at: entry.folder.file("fingerprints.cbor"))
    #expect(try prover.needsEnrolment(for: lock.descriptor))
    #expect(try proveAtOnce(exchanges) == [.enrolling(device)] + proof)
    #expect(exchanges.withLock { $0 } == 2)
  }

  @Test func `an exchange that fails, or a call that was cancelled, sends nothing to the device`() throws {
    struct Failure: Error {}
    let (ours, theirs) = try Connection.pair()
    #expect(throws: Failure.self) {
      try prover.prove(Request(command: "status"), over: TestChannel(ours), enrollingFor: lock.descriptor) { _ in
        throw Failure()
      }
    }
    let cancellation = Cancellation()
    cancellation.cancel()
    let fault = #expect(throws: ProverError.self) {
      try prover.prove(
        Request(command: "status"), over: TestChannel(ours), enrollingFor: lock.descriptor,
        options: ProofOptions(cancellation: cancellation)
      ) { try lock.token(for: $0) }
    }
    guard case .cancelled = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    ours.shutdown()
    #expect(throws: TransportError.closed) { try theirs.receive(by: .never, wholeWithin: 1000) }
    #expect(try prover.needsEnrolment(for: lock.descriptor))
  }

  @Test(.timeLimit(.minutes(5))) func `the steps of a proof are a sequence that ends with the outcome or the error`()
    async throws
  {
    let endpoint = try #require(try? Endpoint(parsing: "unix:\(place.file("nobody.sock"))"))
    try enroll()
    var stages: [ProofStage] = []
    await #expect(throws: ProverError.self) {
      for try await step in prover.steps(of: Request(command: "status"), at: endpoint) {
        if case .stage(let stage) = step { stages.append(stage) }
      }
    }
    #expect(stages == [.measuring, .connecting])
  }
}
