import HoldfastAuthenticator
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastUser

/// The exchanges of a user with a real device that is served at a socket.
@Suite struct AuthenticatorUserTests {
  private let ann = BoundedText<32>("ann" as StaticString)

  @Test func `a user is activated, proves with a code, synchronises, and challenges the device`() throws {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    let activated = try user.activate(
      with: lock.activation(of: ann), at: lock.endpoint, protection: .pin(try pin("482915")))
    #expect(activated.user == "ann")
    #expect(activated.device == lock.descriptor.deviceID)
    try prove(lock, user, "482915", expecting: .accepted)
    let synchronised = try user.synchronise(as: lock.prover, at: lock.endpoint)
    #expect(synchronised.user == "ann" && synchronised.device == lock.descriptor.deviceID)
    #expect(synchronised.otpNext == 1 && synchronised.sealNext == 0)
    #expect(synchronised.clockOffsetSeconds.magnitude <= 60)
    let host = try AuthenticatorFolder.open(at: user.authenticator).record(purpose: .host)
    #expect(try user.challengeDevice(with: host, as: lock.prover, at: lock.endpoint) != nil)
  }

  @Test func `the same from a task`() async throws {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    let activated = try await user.activate(
      with: lock.activation(of: ann), at: lock.endpoint, protection: .none)
    #expect(activated.user == "ann")
    #expect(try await user.synchronise("ann", as: lock.prover, at: lock.endpoint).otpNext == 0)
    let host = try AuthenticatorFolder.open(at: user.authenticator).record(purpose: .host)
    #expect(try await user.challengeDevice(with: host, as: lock.prover, at: lock.endpoint) != nil)
    let renewed = try await user.unlock(
      with: lock.renewal(of: ann), at: lock.endpoint, newProtection: .pin(try pin("482915")))
    #expect(renewed.user == "ann")
    #expect(try AuthenticatorFolder.open(at: user.authenticator).record(purpose: .otp).protection == .pin)
  }

  @Test func `the same over connections of the app's, with a state that the app keeps`() throws {
    let lock = try ServedLock()
    let store = MemoryStore()
    let user = AuthenticatorUser(store: store)
    func connection() throws -> Connection { try Connection.connect(to: lock.endpoint, timeoutMilliseconds: 5000) }
    try user.activate(with: lock.activation(of: ann), over: connection(), protection: .none)
    let (authenticator, channel) = (try user.open(), try connection())
    let stamp = try #require(try authenticator.stamp())
    #expect(try authenticator.users() == ["ann"] && authenticator.devices() == [lock.descriptor.deviceID])
    #expect(try user.synchronise(as: lock.prover, over: channel).otpNext == 0)
    let host = try authenticator.record(purpose: .host)
    #expect(try user.challengeDevice(with: host, as: lock.prover, over: channel) != nil, "the channel is still open")
    #expect(
      try #require(try authenticator.stamp()).changeCount > stamp.changeCount, "another instance's changes are seen")
    let later = try #require(AuthenticatorStamp(id: stamp.id, changeCount: stamp.changeCount + 100))
    #expect(throws: UserExchangeError.self) {
      try AuthenticatorUser(store: store, notBefore: later).synchronise(as: lock.prover, at: lock.endpoint)
    }
  }

  @Test func `existing records stay, and the code stays good`() throws {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    try user.activate(with: lock.activation(of: ann), at: lock.endpoint, protection: .none)
    let before = try AuthenticatorFolder.open(at: user.authenticator).records()
    let text = try text(of: lock.activation(of: ann, replaces: true))
    do {
      try user.activate(with: code(text), at: lock.endpoint, protection: .none)
      Issue.record("records were replaced")
    } catch {
      guard case .alreadyActivated("ann") = error else { throw error }
    }
    #expect(try AuthenticatorFolder.open(at: user.authenticator).records() == before)
    try user.activate(with: code(text), at: lock.endpoint, protection: .none, replacing: true)
    #expect(try user.synchronise(as: lock.prover, at: lock.endpoint).otpNext == 0)
  }

  @Test func `a used code is refused, and a device of others is no exchange`() throws {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    let text = try text(of: lock.activation(of: ann))
    try user.activate(with: code(text), at: lock.endpoint, protection: .none)
    #expect(throws: (any Error).self) {
      try AuthenticatorUser(authenticator: lock.folder.file("others")).activate(
        with: code(text), at: lock.endpoint, protection: .none)
    }
    #expect(try AuthenticatorFolder.open(at: lock.folder.file("others")).records().isEmpty)
    #expect(throws: (any Error).self) { try AuthenticatorUser.unlock(with: code(text), at: lock.endpoint) }
    #expect(throws: (any Error).self) {
      try AuthenticatorUser(authenticator: lock.folder.file("nothing")).synchronise(as: lock.prover, at: lock.endpoint)
    }
  }

  @Test func `a PIN is changed only if the undo code was shown, and can be restored with it`() throws {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    try user.activate(with: lock.activation(of: ann), at: lock.endpoint, protection: .pin(try pin("482915")))
    func record() throws -> Record { try AuthenticatorFolder.open(at: user.authenticator).record(purpose: .otp) }
    let isChanged = try user.changeProtection(
      of: record(), from: .pin(try pin("482915")), to: .pin(try pin("736204")), showing: { _ in false })
    #expect(!isChanged)
    try prove(lock, user, "482915", expecting: .accepted)
    var undo: [UInt8] = []
    try user.changeProtection(of: record(), from: .pin(try pin("111213")), to: .pin(try pin("736204"))) { code in
      undo = (0..<code.count).map { code[$0] }
      return true
    }
    #expect(undo.count == 34)
    try prove(lock, user, "736204", expecting: .otpRejected)
    try user.undoChange(of: "ann", under: undo.span)
    try prove(lock, user, "482915", expecting: .accepted)
    try user.changeProtection(of: record(), from: .pin(try pin("482915")), to: .pin(try pin("736204"))) { _ in true }
    try prove(lock, user, "736204", expecting: .accepted)
    #expect(try user.confirmChange(of: "ann"))
    #expect(try !user.confirmChange(of: "ann"))
    #expect(throws: (any Error).self) { try user.undoChange(of: "ann", under: undo.span) }
  }

  @Test func `weaker protection than the owner demands is refused, and the code stays good`() throws {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    let demand = try #require(ProtectionDemand(pinLength: 6))
    let text = try text(of: lock.activation(of: ann, terms: ActivationTerms(demand: demand)))
    func activate(_ protection: borrowing ProtectionSecret) throws {
      do { try user.activate(with: code(text), at: lock.endpoint, protection: protection) } catch {
        guard case .authenticator(.demanded(let wanted)) = error, wanted == demand else { throw error }
      }
    }
    try activate(.none)
    try activate(.pin(try pin("4829")))
    #expect(try AuthenticatorFolder.open(at: user.authenticator).records().isEmpty)
    try activate(.pin(try pin("482915")))
    let record = try AuthenticatorFolder.open(at: user.authenticator).record(purpose: .otp)
    #expect(record.demand == demand && record.isConfirmed)
    do {
      try user.changeProtection(of: record, from: .pin(try pin("482915")), to: .none) { _ in
        Issue.record("an undo code was shown")
        return true
      }
    } catch let error as UserExchangeError {
      guard case .authenticator(.demanded(let wanted)) = error, wanted == demand else { throw error }
    }
    try prove(lock, user, "482915", expecting: .accepted)
  }

  @Test func `a forgotten PIN is replaced in the step that unlocks, and a code for something else leaves the records`()
    throws
  {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    try user.activate(with: lock.activation(of: ann), at: lock.endpoint, protection: .pin(try pin("482915")))
    try lock.lock(ann)
    try prove(lock, user, "482915", expecting: .lockedOut)
    let before = try AuthenticatorFolder.open(at: user.authenticator).records()
    var random = SystemRandom()
    let wrong = try OneUseCode.random(using: &random)
    do {
      try user.unlock(with: wrong, at: lock.endpoint, newProtection: .pin(try pin("736204")))
      Issue.record("a code of nobody was taken")
    } catch let error as UserExchangeError { guard case .exchange = error else { throw error } }
    #expect(try AuthenticatorFolder.open(at: user.authenticator).records() == before)
    // The authenticator of somebody else does not become ann's.
    let other = AuthenticatorUser(authenticator: lock.folder.file("others"))
    _ = try AuthenticatorFolder.create(at: other.authenticator)
    let text = try text(of: lock.renewal(of: ann))
    do {
      try other.unlock(with: code(text), at: lock.endpoint, newProtection: .none)
      Issue.record("ann's secrets went to another authenticator")
    } catch { guard case .authenticator(.unknownRecord) = error else { throw error } }
    let renewed = try user.unlock(
      with: code(text), at: lock.endpoint, newProtection: .pin(try pin("736204")))
    #expect(renewed.user == "ann")
    try prove(lock, user, "736204", expecting: .accepted)
    try prove(lock, user, "482915", expecting: .otpRejected)
  }

  @Test func `new secrets whose confirmation was lost are found by synchronising, and the old ones serve until then`()
    throws
  {
    let lock = try ServedLock()
    let user = AuthenticatorUser(authenticator: lock.folder.file("keys"))
    try user.activate(with: lock.activation(of: ann), at: lock.endpoint, protection: .none)
    // The device never saw a confirmation: what waits is of another device's making.
    let folder = try AuthenticatorFolder.open(at: user.authenticator)
    var random = SystemRandom()
    let stray = NewRecord(
      index: 3, purpose: .host,
      credential: Credential(
        user: "ann", method: .ocra(.host), secret: SecretBytes(copying: [UInt8](repeating: 5, count: 32).span)),
      deviceID: lock.descriptor.deviceID)
    #expect(try folder.store([stray], protection: .none, replacing: true, random: &random))
    _ = try user.synchronise(as: lock.prover, at: lock.endpoint)
    #expect(try folder.waitingRecords(of: "ann").count == 1)
    // Another folder has the new secrets, as this one would have if the last message had arrived.
    let twin = AuthenticatorUser(authenticator: lock.folder.file("twin"))
    try twin.activate(with: lock.activation(of: ann, replaces: true), at: lock.endpoint, protection: .none)
    let records = try AuthenticatorFolder.open(at: twin.authenticator)
    let fresh = try records.records().map { record in
      NewRecord(
        index: record.index, purpose: record.purpose, credential: try records.credential(of: record, with: .none),
        deviceID: record.deviceID, lookAheadWindow: record.lookAheadWindow)
    }
    #expect(try folder.store(fresh, protection: .none, replacing: true, random: &random))
    #expect(try user.synchronise(as: lock.prover, at: lock.endpoint).otpNext == 0)
    #expect(try folder.waitingRecords(of: "ann").isEmpty)
    let code = try folder.code(for: folder.record(purpose: .otp), with: .none, clock: SystemClock())
    var request = Request(command: BoundedText("configure" as StaticString))
    request.codes[.otp] = UserCode(user: ann, code: try #require(BoundedText(code.text)))
    #expect(try lock.prover.prove(request, at: lock.endpoint).verdict.status == .accepted)
  }

  /// Proves with a one-time password under a PIN, for a command that needs one.
  private func prove(_ lock: ServedLock, _ user: AuthenticatorUser, _ digits: String, expecting status: Status) throws {
    let authenticator = try AuthenticatorFolder.open(at: user.authenticator)
    let code = try authenticator.code(
      for: authenticator.record(purpose: .otp), with: .pin(try pin(digits)), clock: SystemClock())
    var request = Request(command: BoundedText("configure" as StaticString))
    request.codes[.otp] = UserCode(user: ann, code: try #require(BoundedText(code.text)))
    #expect(try lock.prover.prove(request, at: lock.endpoint).verdict.status == status)
  }

  private func pin(_ digits: String) throws -> PIN { try PIN(Array(digits.utf8).span) }

  private func code(_ text: [UInt8]) -> OneUseCode { OneUseCode(text.span)! }

  private func text(of code: borrowing OneUseCode) throws -> [UInt8] {
    var text: [UInt8] = []
    code.write(into: &text)
    return text
  }
}

/// A state that an app keeps in memory.
private final class MemoryStore: AuthenticatorStore {
  private let contents = Mutex<[UInt8]?>(nil)

  func load() throws(AuthenticatorFault) -> [UInt8]? { contents.withLock { $0 } }

  func replace(_ old: [UInt8]?, with new: [UInt8]) throws(AuthenticatorFault) {
    let isReplaced = contents.withLock { now in
      guard now == old else { return false }
      now = new
      return true
    }
    guard isReplaced else { throw .busy }
  }
}
