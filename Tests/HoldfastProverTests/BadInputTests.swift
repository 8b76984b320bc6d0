import Dispatch
import Foundation
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastProver

/// Wrong folders, lengths and orders of calls, calls at once, and peers that end in the middle.
@Suite struct BadInputTests {
  private let place: TemporaryFolder
  private let prover: Prover
  private let lock: TestLock
  /// A token by its form.
  private static let token = MeasurementToken([0xd2, 1])

  init() throws {
    place = try TemporaryFolder()
    prover = Prover(state: place.file("phone"), keys: .default)
    lock = try TestLock()
  }

  /// The calls that need a state folder.
  enum Call: CaseIterable {
    case enroll, begin, accept, prove, explain, status
  }

  private func make(_ call: Call, of prover: Prover) throws {
    let device = lock.descriptor
    switch call {
    case .enroll: try prover.enroll(for: device, exchange: { _ in Self.token })
    case .begin: _ = try prover.begin(for: device.deviceID)
    case .accept: try prover.accept(Self.token, for: device)
    case .prove:
      let (ours, _) = try Connection.pair()
      _ = try prover.prove(Request(command: "status"), over: ours)
    case .explain: _ = try prover.explain()
    case .status: _ = try prover.status()
    }
  }

  @Test(arguments: Call.allCases, [FolderKind.device, .service, .authenticator])
  func `every call refuses a folder of another kind, and writes nothing into it`(call: Call, kind: FolderKind) throws {
    let path = place.file("other")
    try Files.createPrivateDirectory(at: path)
    let name = [FolderKind.device: "device.json", .service: "issuer.key"][kind] ?? "authenticator.sqlite"
    try Files.writeFileAtomically([], at: path + "/" + name, overwrite: false)
    let fault = stateFault { try make(call, of: Prover(state: path, keys: .default)) }
    guard case .file(let error) = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    #expect(error.kind == .anotherKind(kind))
    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [name])
  }

  @Test(arguments: [Call.accept, .prove, .explain, .status])
  func `without an enrolment or a baseline there is nothing to work with`(call: Call) {
    switch stateFault({ try make(call, of: prover) }) {
    case .noBaseline: #expect(call == .accept)
    case .nothingEnrolled: #expect(call != .accept)
    case let fault: #expect(Bool(false), "\(String(describing: fault))")
    }
  }

  @Test(arguments: [Call.prove, .explain])
  func `an enrolment of another version is refused before anything is sent`(call: Call) throws {
    try make(.enroll, of: prover)
    let path = try #require(prover.folder.entries().first).folder.file(EnrolmentFolder.enrolmentName)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let later = text.replacing(#""version": 2"#, with: #""version": 99"#)
    #expect(later != text)
    try Files.writeFileAtomically(Array(later.utf8), at: path, overwrite: true)
    let fault = stateFault { try make(call, of: prover) }
    guard case .otherVersion = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `bytes that are no token are refused, and the baseline waits on`() throws {
    _ = try prover.begin(for: lock.descriptor.deviceID)
    let long = [0xd2] + [UInt8](repeating: 0, count: 3072)
    for bytes in [[], [0], Array("eyJ.only.three".utf8), long] {
      let fault = stateFault { try prover.accept(MeasurementToken(bytes), for: lock.descriptor) }
      guard case .notAToken = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    }
    try make(.accept, of: prover)
    #expect(try prover.status().count == 1)
  }

  @Test func `a token is accepted again and changes nothing, and no other one is accepted in its place`() throws {
    let (device, other) = (lock.descriptor, MeasurementToken([0xd2, 2]))
    try make(.begin, of: prover)
    try make(.accept, of: prover)
    let entry = try prover.folder.requiredEntry(of: device.deviceID).folder
    try entry.setRemembered(Self.token.bytes)
    let identity = try FileManager.default.attributesOfItem(atPath: entry.path)[.systemFileNumber] as? Int
    for replacing in [false, true] {
      try prover.accept(Self.token, for: device, replacing: replacing)
      let refusal = stateFault { try prover.accept(other, for: device, replacing: replacing) }
      guard case .noBaseline = refusal else { return #expect(Bool(false), "\(String(describing: refusal))") }
    }
    // The next baseline is the next token's, although the first token comes once more.
    try make(.begin, of: prover)
    try prover.accept(Self.token, for: device, replacing: true)
    #expect(entry.isRemembered(Self.token.bytes))
    #expect(try FileManager.default.attributesOfItem(atPath: entry.path)[.systemFileNumber] as? Int == identity)
    try prover.accept(other, for: device, replacing: true)
    #expect(try entry.load().token == other.bytes)
  }

  @Test func `the token of an enrolment is not accepted for a device with another key`() throws {
    try make(.begin, of: prover)
    try make(.accept, of: prover)
    let other = try TestLock(id: 8).descriptor
    let impostor = try DeviceDescriptor(deviceID: lock.descriptor.deviceID, publicPoint: other.publicKey.point)
    let refusal = stateFault { try prover.accept(Self.token, for: impostor, replacing: true) }
    guard case .noBaseline = refusal else { return #expect(Bool(false), "\(String(describing: refusal))") }
  }

  @Test func `a device that is enrolled is not asked for again, and a failed exchange stores nothing`() throws {
    struct Refusal: Error {}
    #expect(throws: Refusal.self) { try prover.enroll(for: lock.descriptor) { _ in throw Refusal() } }
    guard case .nothingEnrolled = stateFault({ _ = try prover.status() }) else { return #expect(Bool(false)) }
    try make(.enroll, of: prover)
    let fault = stateFault {
      try prover.enroll(for: lock.descriptor) { _ in
        Issue.record("the evidence was sent")
        return Self.token
      }
    }
    guard case .alreadyEnrolled = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `of enrolments for one device at once, one succeeds`() throws {
    let (prover, device) = (prover, lock.descriptor)
    let refusals = Mutex(0)
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      switch stateFault({ try prover.enroll(for: device) { _ in Self.token } }) {
      case .alreadyEnrolled: refusals.withLock { $0 += 1 }
      case nil: break
      case let fault?: Issue.record("\(fault)")
      }
    }
    #expect(refusals.withLock { $0 } == 3)
    #expect(try prover.explain().count == 1)
  }

  @Test(arguments: [1, 2], FaultyChannel.Fault.allCases)
  func `a device that ends in the middle, or whose message is cut, gives no verdict, and the next proof succeeds`(
    number: Int, fault: FaultyChannel.Fault
  ) throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let pairs = [try Connection.pair(), try Connection.pair()]
    let device = try lock.serve(pairs.map { $0.1 })
    let error = #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), over: FaultyChannel(pairs[0].0, fault, at: number))
    }
    switch (fault, error) {
    case (.closed, .transport(.closed)), (.truncated, .transport(.truncated)): break
    case (.cut, .session(.malformed)), (.long, .session(.malformed)): break
    default: #expect(Bool(false), "\(String(describing: error))")
    }
    pairs[0].0.shutdown()
    let verdict = try prover.prove(Request(command: "status"), over: pairs[1].0).verdict
    #expect(verdict.status == .accepted)
    pairs[1].0.shutdown()
    device.join()
  }

  @Test func `of two proofs at once over one channel, the second is refused, and the first goes on`() throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let (ours, theirs) = try Connection.pair()
    let device = try lock.serve([theirs])
    let other = prover
    let refusals = Mutex<[ProverError?]>([])
    // The second proof begins in the middle of the first, at each of its stages.
    let options = ProofOptions(progress: { _ in
      var refusal: ProverError?
      do throws(ProverError) { _ = try other.prove(Request(command: "status"), over: ours) } catch { refusal = error }
      refusals.withLock { $0.append(refusal) }
    })
    let verdict = try prover.prove(Request(command: "status"), over: ours, options: options).verdict
    #expect(verdict.status == .accepted)
    #expect(refusals.withLock { $0.count } >= 4)
    for refusal in refusals.withLock({ $0 }) {
      guard case .channelInUse = refusal else { return #expect(Bool(false), "\(String(describing: refusal))") }
    }
    #expect(try prover.prove(Request(command: "status"), over: ours).verdict.status == .accepted)
    ours.shutdown()
    device.join()
  }

  @Test func `a proof that failed leaves its channel to the next one`() throws {
    try prover.enroll(for: lock.descriptor) { try lock.token(for: $0) }
    let (ours, theirs) = try Connection.pair()
    #expect(throws: ProverError.self) {
      try prover.prove(Request(command: "status"), over: ours, options: ProofOptions(timeoutMilliseconds: 0))
    }
    let device = try lock.serve([theirs])
    #expect(try prover.prove(Request(command: "status"), over: ours).verdict.status == .accepted)
    ours.shutdown()
    device.join()
  }

  @Test(arguments: [0, -1, .min]) func `no time is no wait`(milliseconds: Int) throws {
    try make(.enroll, of: prover)
    let (ours, theirs) = try Connection.pair()
    let error = #expect(throws: ProverError.self) {
      try prover.prove(
        Request(command: "status"), over: ours, options: ProofOptions(timeoutMilliseconds: milliseconds))
    }
    guard case .transport(.timedOutWaiting) = error else { return #expect(Bool(false), "\(String(describing: error))") }
    _ = theirs
  }
}
