import CHoldfast
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

/// The object behind `hf_session_t`. It serves one call at a time.
final class CSession: @unchecked Sendable {
  private typealias Session = VerifierSession<CallerMachine, DeviceSecrets, SystemRandom, SystemClock>

  private let device: CDevice
  /// These two are used only by the thread that has set ``isInUse``.
  private var session: Session
  private var awaits = Awaited.challenge
  private let isInUse = Atomic(false)

  /// The next step of the connection.
  private enum Awaited {
    case challenge, message, end
  }

  private init(_ session: consuming Session, of device: CDevice) {
    self.session = session
    self.device = device
  }

  /// Begins a session of a device that is not served.
  static func open(of device: CDevice) throws(CallFailure) -> CSession {
    try device.addSession()
    do throws(DeviceFault) {
      return CSession(try device.device.session(actuator: device.machine), of: device)
    } catch {
      device.removeSession()
      throw CallFailure(error)
    }
  }

  deinit { device.removeSession() }

  /// Begins a round, and returns its challenge.
  func challenge() throws(CallFailure) -> [UInt8] {
    try enter()
    defer { leave() }
    guard awaits != .end else { throw CallFailure(HF_ERROR_ORDER) }
    awaits = .end
    do throws(DeviceFault) {
      let message = try session.challenge()
      awaits = .message
      return message
    } catch { throw CallFailure(error) }
  }

  /// Answers a message.
  func answer(_ message: [UInt8], waitedMilliseconds: UInt64) throws(CallFailure) -> SessionAnswer {
    try enter()
    defer { leave() }
    guard awaits == .message else { throw CallFailure(HF_ERROR_ORDER) }
    let answer = session.respond(to: message.span, waitedMilliseconds: waitedMilliseconds)
    let outcome = answer.outcome
    awaits = outcome.closesConnection ? .end : outcome.awaitsConfirmation ? .message : .challenge
    return answer
  }

  /// Refuses a message that never came or was not whole.
  func refuse(_ status: Status) throws(CallFailure) -> [UInt8] {
    try enter()
    defer { leave() }
    // A session that has ended stays so.
    if awaits != .end { awaits = status == .malformed ? .end : .challenge }
    return session.refuse(status)
  }

  private func enter() throws(CallFailure) {
    guard !isInUse.exchange(true, ordering: .acquiring) else { throw CallFailure(HF_ERROR_BUSY) }
  }

  private func leave() { isInUse.store(false, ordering: .releasing) }
}

/// Begins a session; see the header.
@c @implementation public func hf_session_open(
  _ device: OpaquePointer?, _ session: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt {
  call { () throws(CallFailure) in
    guard let handle = unsafe session else { throw .argument }
    unsafe Handle.give(try CSession.open(of: Handle.object(device, CDevice.self)), to: handle)
    return 0
  }
}

/// Closes a session; see the header.
@c @implementation public func hf_session_close(_ session: OpaquePointer?) {
  unsafe Handle.takeBack(session, CSession.self)
}

/// Begins a round; see the header.
@c @implementation public func hf_session_challenge(
  _ session: OpaquePointer?, _ message: UnsafeMutablePointer<UInt8>?, _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(session, CSession.self)
    let buffer = try unsafe CallerBuffer(message, length)
    try buffer.require(Int(HF_CHALLENGE_BYTES))
    let challenge = try object.challenge()
    try buffer.write(challenge.span)
    return 0
  }
}

/// Answers a message; see the header.
@c @implementation public func hf_session_receive(
  _ session: OpaquePointer?, _ message: UnsafePointer<UInt8>?, _ message_length: Int, _ waited_milliseconds: UInt64,
  _ verdict: UnsafeMutablePointer<UInt8>?, _ length: UnsafeMutablePointer<Int>?,
  _ round: UnsafeMutablePointer<hf_round_t>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(session, CSession.self)
    guard let round = unsafe round else { throw .argument }
    let buffer = try unsafe CallerBuffer(verdict, length)
    guard unsafe message != nil || message_length == 0 else { throw .argument }
    try buffer.require(Int(HF_VERDICT_BYTES))
    // One byte too many is malformed, and so are more, which Swift may read as a negative number.
    let longest = Int(HF_MESSAGE_BYTES) + 1
    let count = message_length < 0 ? longest : min(message_length, longest)
    let bytes = unsafe count == 0 ? [] : try Input.bytes(message, count, in: 1...longest)
    let answer = try object.answer(bytes, waitedMilliseconds: waited_milliseconds)
    try buffer.write(answer.message.span)
    let outcome = answer.outcome
    unsafe round.pointee = hf_round_t(
      is_peer_authenticated: outcome.isPeerAuthenticated ? 1 : 0,
      delay_milliseconds: UInt32(clamping: outcome.delayMilliseconds),
      closes_connection: outcome.closesConnection ? 1 : 0, awaits_confirmation: outcome.awaitsConfirmation ? 1 : 0)
    return outcome.status.result
  }
}

/// Writes the verdict on a message that never came; see the header.
@c @implementation public func hf_session_refuse(
  _ session: OpaquePointer?, _ status: CInt, _ verdict: UnsafeMutablePointer<UInt8>?,
  _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(session, CSession.self)
    let buffer = try unsafe CallerBuffer(verdict, length)
    guard let status = UInt8(exactly: status).flatMap(Status.init(rawValue:)),
      [.challengeExpired, .malformed, .busy].contains(status)
    else { throw .argument }
    try buffer.require(Int(HF_VERDICT_BYTES))
    let refusal = try object.refuse(status)
    try buffer.write(refusal.span)
    return 0
  }
}
