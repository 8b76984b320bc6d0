/// The commands by which a user and a device come to agree: where their codes are, and that the device is the right one.
///
/// Both are for policy to allow. The user is the first parameter; for one that is not known the answer is empty.
public enum UserCommandName {
  /// `user-sync`, with a user.
  public static let synchronise: BoundedText<32> = BoundedText("user-sync")
  /// `host-code`, with a user and a challenge of 16 hexadecimal digits.
  public static let hostCode: BoundedText<32> = BoundedText("host-code")
}

extension DeviceSession
where
  Crypto: ~Copyable, Key: ~Copyable, Store: ~Copyable, Rules: ~Copyable, Random: ~Copyable, Time: ~Copyable
{
  /// Carries out a command of users; says whether it is one.
  package mutating func performUserCommand(
    _ request: borrowing Request, result: inout ByteBuffer<1024>
  ) throws(ActuatorFailure) -> Bool {
    if request.command == UserCommandName.synchronise {
      try synchronise(request, result: &result)
      return true
    }
    if request.command == UserCommandName.hostCode {
      try answerHost(request, result: &result)
      return true
    }
    return false
  }

  /// CBOR `[time, otp, seal]`: the time that the user's clock is expected to have, and the first position that would be accepted
  /// of each account, or null.
  @inline(never)
  private mutating func synchronise(
    _ request: borrowing Request, result: inout ByteBuffer<1024>
  ) throws(ActuatorFailure) {
    guard request.parameterCount == 1 else { throw ActuatorFailure() }
    let user: UserRecord
    let now: UInt64
    do throws(StoreFailure) {
      guard let name = request.user, let found = try store.user(named: name) else { return }
      user = found
      now = max(try store.clockFloor(), clock.unixSeconds() ?? 0)
    } catch { throw ActuatorFailure() }
    do throws(EncodingFault) {
      try result.appendCBOR(array: 3)
      try result.appendCBOR(unsigned: user.time(at: now))
      try result.appendPosition(of: user.otp)
      try result.appendPosition(of: user.seal)
    } catch { throw ActuatorFailure() }
  }

  /// Text of two words, the device's challenge of 16 hexadecimal digits, and the host code: OCRA over the user's challenge,
  /// the second parameter, and the device's. Source: RFC 6287 §7.2.
  @inline(never)
  private mutating func answerHost(_ request: borrowing Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure)
  {
    guard request.parameterCount == 2 else { throw ActuatorFailure() }
    let clientChallenge = request.parameter(1)
    let fresh: FixedBytes<8>
    do throws(RandomFailure) { fresh = try random.fixedBytes() } catch { throw ActuatorFailure() }
    var question = ByteBuffer<80>()
    do throws(EncodingFault) {
      try question.append(clientChallenge.bytes)
      guard question.count == 16 else { throw .unexpected }
      try question.appendHexadecimal(fresh.bytes)
    } catch { throw ActuatorFailure() }
    guard let asked = OCRAQuestion(question.bytes, for: .host) else { throw ActuatorFailure() }
    let found: CodeSecret?
    do throws(StoreFailure) { found = try challengeUser(request, with: fresh) } catch { throw ActuatorFailure() }
    guard let secret = found else { return }
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

  /// Notes the challenge; gives the secret of the user's host codes, nil where the user is not known or has none.
  private mutating func challengeUser(
    _ request: borrowing Request, with fresh: FixedBytes<8>
  ) throws(StoreFailure) -> CodeSecret? {
    guard let name = request.user,
      let userID = try store.challenge(name, with: fresh, realClock: clock.unixSeconds())
    else { return nil }
    return try store.codeSecret(of: userID, .host)
  }
}

extension Request {
  /// Whom the first parameter names; nil for what is no name.
  fileprivate var user: BoundedText<32>? {
    let parameter = parameter(0)
    return BoundedText(parameter.bytes)
  }
}

extension ByteBuffer {
  fileprivate mutating func appendPosition(of account: CodeAccount?) throws(EncodingFault) {
    guard let account else { return try appendCBORNull() }
    try appendCBOR(unsigned: account.nextPosition)
  }
}
