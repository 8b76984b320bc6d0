import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// The commands by which a user and a device come to agree: where their codes are, and that the device is the right one.
///
/// Both are for policy to allow. The user is the first parameter; for one that is not known the answer is empty.
struct UserCommands<Random: RandomSource & Sendable, Time: Clock & Sendable>: Sendable {
  let ledger: Ledger
  var random: Random
  let clock: Time

  /// Carries out a command of users; says whether it is one.
  mutating func perform(_ request: Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) -> Bool {
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
  private func synchronise(_ request: Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    guard request.parameterCount == 1 else { throw ActuatorFailure() }
    let name = request.parameter(0)
    do throws(DatabaseError) {
      let found = try ledger.read { (tables) throws(DatabaseError) -> (user: UserRecord, now: UInt64)? in
        guard let name = BoundedText<32>(name.bytes), let user = try tables.user(named: name) else { return nil }
        return (user, try tables.state().time(realClock: clock.unixSeconds()))
      }
      do throws(EncodingFault) {
        guard let found else { return }
        try result.appendCBOR(array: 3)
        try result.appendCBOR(unsigned: found.user.time(at: found.now))
        for purpose in [CodePurpose.otp, .seal] {
          if let account = found.user.account(purpose) {
            try result.appendCBOR(unsigned: account.nextPosition)
          } else {
            try result.appendCBORNull()
          }
        }
      } catch { throw DatabaseError.misuse }
    } catch { throw ActuatorFailure() }
  }

  /// Text of two words, the device's challenge of 16 hexadecimal digits, and the host code: OCRA over the user's challenge,
  /// the second parameter, and the device's. Source: RFC 6287 §7.2.
  private mutating func answerHost(_ request: Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    guard request.parameterCount == 2 else { throw ActuatorFailure() }
    let name = request.parameter(0)
    let clientChallenge = request.parameter(1)
    let fresh: FixedBytes<8>
    do throws(RandomFailure) { fresh = try random.fixedBytes() } catch { throw ActuatorFailure() }
    var question = ByteBuffer<80>()
    do throws(EncodingFault) {
      try question.append(clientChallenge.bytes)
      guard question.count == 16 else { throw .unexpected }
      try question.appendHexadecimal(fresh.bytes)
    } catch { throw ActuatorFailure() }
    guard let asked = OCRAQuestion(question.bytes, for: ActivationGrant.hostSuite) else { throw ActuatorFailure() }
    let secret: CodeSecret?
    do throws(LedgerError) {
      secret = try ledger.challenge(name, with: fresh, realClock: clock.unixSeconds())
    } catch { throw ActuatorFailure() }
    do throws(EncodingFault) {
      guard let secret else { return }
      try result.append(question.bytes.extracting(16..<32))
      try result.append(0x20)
      let code = try hostCode(asked, secret)
      try result.append(code.bytes)
    } catch { throw ActuatorFailure() }
  }

  private func hostCode(
    _ question: OCRAQuestion, _ secret: borrowing CodeSecret
  ) throws(EncodingFault) -> BoundedText<16> {
    var cryptography = OpenSSLCryptography()
    do throws(OCRAFault) {
      return try OCRA.code(
        suite: ActivationGrant.hostSuite, key: secret.bytes, input: OCRAInput(question: question), using: &cryptography)
    } catch { throw .unexpected }
  }
}

/// The names of the commands of users.
public enum UserCommandName {
  /// `user-sync`, with a user.
  public static let synchronise: BoundedText<32> = BoundedText("user-sync")
  /// `host-code`, with a user and a challenge of 16 hexadecimal digits.
  public static let hostCode: BoundedText<32> = BoundedText("host-code")
}

/// What a device does when a command is accepted: the lock's commands, and the users'.
struct DeviceActuator<Random: RandomSource & Sendable, Time: Clock & Sendable>: Actuator {
  var users: UserCommands<Random, Time>
  var lock: LockActuator

  mutating func perform(_ request: Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    if try users.perform(request, result: &result) { return }
    try lock.perform(request, result: &result)
  }
}
