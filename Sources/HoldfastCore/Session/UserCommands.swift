/// The commands of users, which the device itself carries out: they return the positions of the user's codes, prove the
/// device to the user, tell whether the user is locked out, and ask the user for a seal.
///
/// All need the permission of policy. The user is the first parameter, and must be the token's own user if the token
/// has one. For an unknown user, the result is empty.
package enum UserCommandName {
  /// `user-sync`, whose parameter is a user.
  package static let synchronise: BoundedText<32> = BoundedText("user-sync")
  /// `host-code`, whose parameters are a user and a challenge of 16 hexadecimal digits.
  package static let hostCode: BoundedText<32> = BoundedText("host-code")
  /// `user-state`, whose parameter is a user, for devices whose policy can allow it: see ``Policy/knowsUserState``. It is made at
  /// each use, so that it takes no memory on a microcontroller.
  package static var state: BoundedText<32> { BoundedText("user-state") }
  /// `seal-request`, whose parameters are a user, a command that needs a seal, and that command's parameters, for devices whose
  /// policy can allow it: see ``Policy/knowsSealRequests``.
  package static var sealRequest: BoundedText<32> { BoundedText("seal-request") }

  /// Returns whether `command` is one of them, which the device itself carries out.
  @inline(never)
  package static func contains(_ command: BoundedText<32>) -> Bool { command == synchronise || command == hostCode }

  /// Returns whether a device with such a policy carries out `command` itself.
  @inline(never)
  package static func contains<Rules: Policy & ~Copyable>(
    _ command: BoundedText<32>, under policy: Rules.Type
  ) -> Bool {
    contains(command) || (policy.knowsUserState && command == state)
      || (policy.knowsSealRequests && command == sealRequest)
  }
}

extension DeviceSession {
  /// Carries out a command of users, and returns whether `request` is one.
  package mutating func performUserCommand(
    _ request: borrowing Request, result: inout ResultBuffer
  ) throws(ActuatorFailure) -> Bool {
    if request.command == UserCommandName.synchronise {
      try synchronise(request, result: &result)
      return true
    }
    if request.command == UserCommandName.hostCode {
      try answerHost(request, result: &result)
      return true
    }
    if Environment.Rules.knowsUserState, request.command == UserCommandName.state {
      try tellState(request, result: &result)
      return true
    }
    if Environment.Rules.knowsSealRequests, request.command == UserCommandName.sealRequest {
      try store.writeSealRequest(over: request, into: &result)
      return true
    }
    return false
  }

  /// Writes CBOR `[failures, seconds]`: the number of failed attempts with codes, and the time until the device looks at
  /// codes again, which is 0 if the user is not locked out.
  private mutating func tellState(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    guard request.parameterCount == 1 else { throw ActuatorFailure() }
    let user: UserRecord
    let now: UInt64
    do throws(DeviceFault) {
      guard let name = request.namedUser(under: Environment.Rules.self), let found = try store.user(named: name) else {
        return
      }
      user = found
      now = try self.now()
    } catch { throw ActuatorFailure() }
    do throws(EncodingFault) {
      try result.appendCBOR(array: 2)
      try result.appendCBOR(unsigned: user.failureCount)
      try result.appendCBOR(unsigned: user.lockedUntil > now ? user.lockedUntil - now : 0)
    } catch { throw ActuatorFailure() }
  }

  /// Writes CBOR `[time, otp, seal]`: the time that the user's clock is expected to have, and the first position of
  /// each account that would be accepted, or null.
  @inline(never)
  private mutating func synchronise(
    _ request: borrowing Request, result: inout ResultBuffer
  ) throws(ActuatorFailure) {
    guard request.parameterCount == 1 else { throw ActuatorFailure() }
    let user: UserRecord
    let now: UInt64
    do throws(DeviceFault) {
      guard let name = request.namedUser(under: Environment.Rules.self), let found = try store.user(named: name) else {
        return
      }
      user = found
      now = try self.now()
    } catch { throw ActuatorFailure() }
    do throws(EncodingFault) {
      try result.appendCBOR(array: 3)
      try result.appendCBOR(unsigned: user.time(at: now))
      try result.appendPosition(of: user.accounts[.otp])
      try result.appendPosition(of: user.accounts[.seal])
    } catch { throw ActuatorFailure() }
  }

  /// Writes two words: the device's challenge of 16 hexadecimal digits, and the host code. The code is OCRA over the
  /// user's challenge, which is the second parameter, and the device's, which was recorded with the round. Source: RFC
  /// 6287 §7.2.
  @inline(never)
  private mutating func answerHost(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    guard request.hasHostChallenge else { throw ActuatorFailure() }
    let clientChallenge = request.parameter(1)
    var fresh = FixedBytes<8>()
    let found: CodeSecret?
    do throws(DeviceFault) { found = try hostSecret(for: request, &fresh) } catch { throw ActuatorFailure() }
    guard let secret = found else { return }
    var question = ByteBuffer<80>()
    do throws(EncodingFault) {
      try question.append(clientChallenge.bytes)
      try question.appendHexadecimal(fresh.bytes)
    } catch { throw ActuatorFailure() }
    guard let asked = OCRAQuestion(question.bytes, for: .host) else { throw ActuatorFailure() }
    let code: BoundedText<16>
    do throws(OCRAFault) {
      code = try OCRA.code(
        suite: .host, key: secret.bytes, input: OCRAInput(question: asked), using: &cryptography)
    } catch { throw ActuatorFailure() }
    do throws(EncodingFault) {
      try result.append(question.bytes.extracting(16..<32))
      try result.append(0x20)
      try result.append(code.bytes)
    } catch { throw ActuatorFailure() }
  }

  /// Returns the secret of the user's host codes, and writes the device's challenge; nil if the user is unknown or has
  /// none.
  private mutating func hostSecret(
    for request: borrowing Request, _ challenge: inout FixedBytes<8>
  ) throws(DeviceFault) -> CodeSecret? {
    guard let name = request.namedUser(under: Environment.Rules.self), let user = try store.user(named: name),
      let issued = user.challenge
    else {
      return nil
    }
    challenge = issued.bytes
    return try store.codeSecret(of: user.id, .host)
  }

  /// Returns a challenge for the user that `host-code` or `seal-request` names; nil for any other request.
  package mutating func freshChallenge(for request: borrowing Request) throws(DeviceFault) -> FixedBytes<8>? {
    guard request.hasHostChallenge || (Environment.Rules.knowsSealRequests && request.isSealRequest) else { return nil }
    do throws(RandomFailure) { return try random.fixedBytes() } catch { throw .random }
  }
}

extension Request {
  /// The user that a command of users names in its first parameter; nil for any other command, and if that is not a
  /// name. The policy's type says which commands are commands of users.
  func namedUser<Rules: Policy & ~Copyable>(under policy: Rules.Type) -> BoundedText<32>? {
    guard UserCommandName.contains(command, under: policy), (parameterCount ?? 0) > 0 else { return nil }
    let parameter = parameter(0)
    return BoundedText(parameter.bytes)
  }

  /// Whether this is `seal-request` with a user and a command.
  fileprivate var isSealRequest: Bool {
    command == UserCommandName.sealRequest && (parameterCount ?? 0) >= 2
  }

  /// Whether this is `host-code` with a user and a challenge of 16 hexadecimal digits.
  fileprivate var hasHostChallenge: Bool {
    guard command == UserCommandName.hostCode, parameterCount == 2 else { return false }
    let challenge = parameter(1)
    let bytes = challenge.bytes
    guard bytes.count == 16 else { return false }
    for index in bytes.indices {
      switch bytes[index] {
      case 0x30...0x39, 0x41...0x46, 0x61...0x66: continue
      default: return false
      }
    }
    return true
  }
}

extension ByteBuffer {
  fileprivate mutating func appendPosition(of account: CodeAccount?) throws(EncodingFault) {
    guard let account else { return try appendCBORNull() }
    try appendCBOR(unsigned: account.nextPosition)
  }
}
