import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastProver

@Suite struct ProverTests {
  private let place: TemporaryFolder
  private let prover: Prover
  private let lock: TestLock

  init() throws {
    place = try TemporaryFolder()
    prover = Prover(state: place.file("phone"), keys: .default)
    lock = try TestLock()
  }

  @Test func `an app enrols and proves over a channel of its own, and each stage is told`() throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let (ours, theirs) = try Connection.pair()
    let device = try lock.serve([theirs])
    let stages = Mutex<[ProofStage]>([])
    let outcome = try prover.prove(
      Request(command: "status"), over: TestChannel(ours),
      options: ProofOptions(progress: { stage in stages.withLock { $0.append(stage) } }))
    ours.shutdown()
    device.join()
    #expect(outcome.verdict.status == .accepted)
    #expect(outcome.verdict.isAuthenticated)
    #expect(outcome.result == Array("status".utf8))
    let id = lock.descriptor.deviceID
    #expect(stages.withLock { $0 } == [.measuring, .connecting, .proving(id), .waiting(id)])
    #expect(try prover.folder.entries().first?.folder.isRemembered(outcome.enrolment?.token ?? []) == true)
  }

  @Test func `proofs of several tasks at once are all accepted, each with a number of its own`() async throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let pairs = try (0..<4).map { _ in try Connection.pair() }
    let device = try lock.serve(pairs.map { $0.1 })
    let prover = prover
    let statuses = await withTaskGroup(of: Status?.self) { group in
      for (ours, _) in pairs {
        group.addTask {
          defer { ours.shutdown() }
          return try? await prover.prove(Request(command: "status"), over: TestChannel(ours)).verdict.status
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    device.join()
    #expect(statuses.count { $0 == .accepted } == 4, "\(statuses)")
  }

  @Test func `a baseline waits for its token, which completes the enrolment once`() throws {
    let device = lock.descriptor
    #expect(throws: (any Error).self) { try prover.checkIsAwaited(for: device.deviceID) }
    let baseline = try prover.begin(for: device.deviceID)
    try prover.checkIsAwaited(for: device.deviceID)
    let fault = #expect(throws: ProverError.self) { try prover.begin(for: device.deviceID) }
    guard case .state(.baselineWaits) = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    let token = try lock.token(for: baseline.evidence)
    try prover.accept(token, for: device)
    #expect(try prover.status().map(\.entry.device) == [device.deviceID])
    // The same token again ends a call that failed in its last step.
    try prover.accept(token, for: device)
    #expect(try prover.status().map(\.entry.device) == [device.deviceID])
    let another = try lock.token(for: baseline.evidence)
    let again = #expect(throws: ProverError.self) { try prover.accept(another, for: device, replacing: true) }
    guard case .state(.noBaseline) = again else { return #expect(Bool(false), "\(String(describing: again))") }
    let changes = try prover.explain()
    #expect(changes.map(\.device) == [device.deviceID])
  }

  @Test func `without an enrolment nothing is measured or sent`() throws {
    let (ours, theirs) = try Connection.pair()
    let fault = #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), over: TestChannel(ours))
    }
    guard case .state(.nothingEnrolled) = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    ours.shutdown()
    #expect(throws: TransportError.closed) {
      try theirs.receive(by: Deadline(afterMilliseconds: 60_000), wholeWithin: 60_000)
    }
  }

  @Test func `a folder of another kind is refused before anything is measured`() throws {
    let path = place.file("device")
    try Files.createPrivateDirectory(at: path)
    try IncompleteFolder.mark(path, as: .device)
    let fault = #expect(throws: ProverError.self) { try Prover(state: path, keys: .default).begin(for: nil) }
    guard case .state(.file(let error)) = fault, case .anotherKind = error.kind else {
      return #expect(Bool(false), "\(String(describing: fault))")
    }
  }

  @Test(arguments: [[UInt8]](arrayLiteral: [], [0x80], [UInt8](repeating: 0xff, count: 4096)))
  func `a peer that ends, or speaks another language, ends the proof with an error`(message: [UInt8]) throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let (ours, theirs) = try Connection.pair()
    if !message.isEmpty { try theirs.send(message.span, timeoutMilliseconds: 60_000) }
    theirs.shutdown()
    let fault = #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), over: TestChannel(ours))
    }
    switch fault {
    case .transport(.closed): #expect(message.isEmpty)
    case .session(.malformed): #expect(!message.isEmpty)
    default: #expect(Bool(false), "\(String(describing: fault))")
    }
  }

  @Test func `a proof that was cancelled before it began measures nothing and sends nothing`() throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let cancellation = Cancellation()
    cancellation.cancel()
    let (ours, _) = try Connection.pair()
    let fault = #expect(throws: ProverError.self) {
      try prover.prove(
        Request(command: "status"), over: TestChannel(ours), options: ProofOptions(cancellation: cancellation))
    }
    guard case .cancelled = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `a proof is cancelled while it waits for a place at a device whose queue is full`() throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let path = place.file("full")
    let listener = try OpenFile.unixSocket(framing: .packets)
    #expect(listener.bind(toPath: path) == 0 && listen(listener.descriptor, 0) == 0)
    var waiting: [OpenFile] = []
    repeat { waiting.append(try OpenFile.unixSocket(framing: .packets)) } while waiting.last!.connect(toPath: path) == 0
    let cancellation = Cancellation()
    let options = ProofOptions(
      timeoutMilliseconds: 600_000, cancellation: cancellation,
      progress: { if $0 == .connecting { cancellation.cancel() } })
    let fault = #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), at: Endpoint(parsing: "unix:\(path)"), options: options)
    }
    guard case .cancelled = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `the end of a task ends its proof at once, although the device is silent`() async throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let (ours, theirs) = try Connection.pair()
    let (connecting, isConnecting) = AsyncStream.makeStream(of: Void.self)
    let options = ProofOptions(
      timeoutMilliseconds: .max, progress: { if $0 == .connecting { isConnecting.yield() } })
    let prover = prover
    let task = Task { try await prover.prove(Request(command: "status"), over: TestChannel(ours), options: options) }
    for await _ in connecting { break }
    task.cancel()
    let result = await task.result
    guard case .failure(let error as ProverError) = result, case .cancelled = error else {
      return #expect(Bool(false), "\(result)")
    }
    _ = theirs
  }
}
