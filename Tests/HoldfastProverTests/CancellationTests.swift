import HoldfastCore
import HoldfastTransport
import TestSupport
import Testing

import HoldfastProver

@Suite struct CancellationTests {
  private let place: TemporaryFolder
  private let prover: Prover
  private let lock: TestLock

  init() throws {
    place = try TemporaryFolder()
    prover = Prover(state: place.file("phone"), keys: .default)
    lock = try TestLock()
    let lock = lock
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
  }

  /// The stages, by their order.
  private static func number(of stage: ProofStage) -> Int {
    switch stage {
    case .enrolling: -1
    case .measuring: 0
    case .connecting: 1
    case .proving: 2
    case .waiting: 3
    }
  }

  @Test(arguments: 0...3) func `a proof is cancelled at any stage`(stage: Int) throws {
    let (ours, theirs) = try Connection.pair()
    let device = try lock.serve([theirs])
    let cancellation = Cancellation()
    let options = ProofOptions(
      cancellation: cancellation, progress: { if Self.number(of: $0) == stage { cancellation.cancel() } })
    let error = #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), over: ours, options: options)
    }
    guard case .cancelled = error else { return #expect(Bool(false), "\(String(describing: error))") }
    ours.shutdown()
    device.join()
  }

  @Test func `one cancellation ends every proof that it was given to`() async throws {
    let cancellation = Cancellation()
    let (waiting, isWaiting) = AsyncStream.makeStream(of: Void.self)
    let pairs = try (0..<3).map { _ in try Connection.pair() }
    let prover = prover
    let errors = await withTaskGroup(of: ProverError?.self) { group in
      for (ours, _) in pairs {
        group.addTask {
          // A proof that is not ended gives up after ten minutes.
          let options = ProofOptions(timeoutMilliseconds: 600_000, cancellation: cancellation)
          let channel = FaultyChannel(ours, onReceive: { isWaiting.yield() })
          do throws(ProverError) {
            _ = try await prover.prove(Request(command: "status"), over: channel, options: options)
            return nil
          } catch { return error }
        }
      }
      var count = 0
      for await _ in waiting {
        count += 1
        if count == pairs.count { break }
      }
      cancellation.cancel()
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(errors.count == 3)
    for error in errors {
      guard case .cancelled = error else { return #expect(Bool(false), "\(errors)") }
    }
  }

  @Test func `a cancellation leaves alone what has ended, and ends what begins later`() throws {
    let (ours, theirs) = try Connection.pair()
    let device = try lock.serve([theirs])
    let channel = FaultyChannel(ours)
    let cancellation = Cancellation()
    let options = ProofOptions(cancellation: cancellation)
    #expect(try prover.prove(Request(command: "status"), over: channel, options: options).verdict.status == .accepted)
    cancellation.cancel()
    #expect(channel.shutdownCount == 0)
    let error = #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), over: channel, options: options)
    }
    guard case .cancelled = error else { return #expect(Bool(false), "\(String(describing: error))") }
    #expect(channel.shutdownCount == 0)
    ours.shutdown()
    device.join()
  }

  @Test func `a proof that has ended keeps no connection, although its cancellation lives on`() throws {
    let path = place.file("socket")
    let listener = try Listener(Endpoint(parsing: "unix:\(path)"))
    let cancellation = Cancellation()
    let options = ProofOptions(timeoutMilliseconds: 0, cancellation: cancellation)
    #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), at: listener.endpoint, options: options)
    }
    #expect(try listener.accept().isEnded(withinMilliseconds: 0))
    #expect(!cancellation.isCancelled)
  }

  @Test func `a task that was cancelled before it began connects to nothing`() async throws {
    let path = place.file("socket")
    let endpoint = try Endpoint(parsing: "unix:\(path)")
    let prover = prover
    let (start, mayStart) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      for await _ in start { break }
      return try await prover.prove(Request(command: "status"), at: endpoint)
    }
    task.cancel()
    mayStart.yield()
    // Nobody listens: a proof that connects fails in another way.
    guard case .failure(let error as ProverError) = await task.result, case .cancelled = error else {
      return #expect(Bool(false), "the proof was not cancelled")
    }
  }
}
