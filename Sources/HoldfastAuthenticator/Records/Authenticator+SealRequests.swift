import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A request for a seal that came from a device which knows the user: its code was right, and it has not expired.
///
/// Show the text, the command and the parameters to the user, and call
/// ``Authenticator/approve(_:with:clock:)`` or ``Authenticator/reject(_:with:clock:)``.
public struct CheckedSealRequest: Sendable {
  /// The record that makes the seal.
  public let record: Record
  /// The device that asks.
  public let device: DeviceID
  /// The command and its parameters.
  public let sealed: SealRequest
  /// The text for people that the device's owner has written, with the parameters inserted; nil if there is none. It may have
  /// characters that control a terminal, if a parameter has.
  public let text: String?
  /// The time at which the request expires, in Unix seconds of the device's clock; nil if it has none.
  public let expires: UInt64?
  /// The device's challenge, which also identifies the request.
  public let challenge: DeviceChallenge

  /// The name of the user who is asked.
  public var user: String { record.user }
}

/// The reasons why a request for a seal was refused. No seal was made, and the user should not be asked.
public enum SealRequestFault: Error, Equatable {
  /// The text is not one of a request, or is cut, or has more than 700 bytes.
  case malformed
  /// The text is that of a request of another version.
  case newerVersion
  /// The authenticator has no records of the user for that device.
  case foreign
  /// The code is wrong: the device did not make this request, or the text was changed.
  case notAuthentic
  /// The request has expired.
  case expired
  /// The device asks for a seal over something that cannot be sealed, because a person could not read it.
  case unreadable(SealFault)
  /// The authenticator cannot be used.
  case authenticator(AuthenticatorFault)
}

extension Authenticator {
  /// Checks a device's request for a seal, before the user is asked. It changes nothing.
  ///
  /// Source: docs/protocol.md, Seal requests. Timing: the comparison does not reveal where the codes differ.
  ///
  /// - Parameters:
  ///   - text: the text of the request, as in its QR code, without an end of line.
  ///   - clock: the clock by which the request may have expired. The known offset of the device's clock is added.
  /// - Throws: ``SealRequestFault``; `authenticator` with `clockOutOfRange` without a clock, if the request expires, and with
  ///   `unknownRecord` if the user gives no seals.
  public func check<Time: Clock & ~Copyable>(
    _ text: [UInt8], clock: borrowing Time
  ) throws(SealRequestFault) -> CheckedSealRequest {
    let request: UncheckedSealRequest
    do throws(SealRequestTextFault) { request = try UncheckedSealRequest(text) } catch {
      throw error == .newerVersion ? .newerVersion : .malformed
    }
    let contents = request.contents
    let own = try using { () throws(AuthenticatorFault) in try records(user: contents.user) }
      .filter { $0.deviceID == contents.device }
    guard let host = own.first(where: { $0.purpose == .host }) else { throw .foreign }
    let key = try using { () throws(AuthenticatorFault) in
      try stored(host).usableSecret().unblinded(with: ProtectionSecret.none)
    }
    let isAuthentic: Bool
    do throws(CryptographyFailure) { isAuthentic = try request.isAuthentic(under: key.bytes) } catch {
      throw .authenticator(.failed)
    }
    guard isAuthentic else { throw .notAuthentic }
    guard let record = own.first(where: { $0.purpose == .seal }) else { throw .authenticator(.unknownRecord) }
    let sealed: SealRequest
    do throws(SealFault) {
      sealed = try SealRequest(
        command: contents.command, parameters: contents.parameters, fieldByteLimit: record.sealFieldByteLimit)
    } catch { throw .unreadable(error) }
    // The device compares bytes. A seal over other bytes would be rejected.
    guard sealed.isExactly(contents.command, contents.parameters),
      let challenge = DeviceChallenge(hexadecimal(contents.challenge))
    else { throw .malformed }
    let checked = CheckedSealRequest(
      record: record, device: contents.device, sealed: sealed, text: contents.text, expires: contents.expires,
      challenge: challenge)
    try checked.checkExpiry(clock)
    return checked
  }

  /// Makes the seal with which the user approves the command of a request.
  ///
  /// - Parameters:
  ///   - request: the request, as ``check(_:clock:)`` returns it.
  ///   - protector: The input that the record's protection requires. A wrong PIN yields a wrong seal.
  ///   - clock: The clock by which a time-based seal is made, and the request may have expired since it was checked.
  /// - Throws: `expired`, and `authenticator` with the errors of ``seal(_:for:challenge:with:clock:)``.
  public func approve<Time: Clock & ~Copyable>(
    _ request: CheckedSealRequest, with protector: borrowing ProtectionSecret, clock: borrowing Time
  ) throws(SealRequestFault) -> Code {
    try request.checkExpiry(clock)
    do throws(AuthenticatorFault) {
      return try seal(
        request.sealed, for: request.record, challenge: request.neededChallenge, with: protector, clock: clock)
    } catch { throw .authenticator(error) }
  }

  /// Makes the refusal with which the user rejects the command of a request. The device records it, and does not act.
  ///
  /// Parameters and errors are those of ``approve(_:with:clock:)``. Like a seal, a refusal uses up its counter or time step.
  public func reject<Time: Clock & ~Copyable>(
    _ request: CheckedSealRequest, with protector: borrowing ProtectionSecret, clock: borrowing Time
  ) throws(SealRequestFault) -> Code {
    try request.checkExpiry(clock)
    do throws(AuthenticatorFault) {
      return try refusal(
        of: request.sealed, for: request.record, challenge: request.neededChallenge, with: protector, clock: clock)
    } catch { throw .authenticator(error) }
  }

  private func using<Result: ~Copyable>(
    _ body: () throws(AuthenticatorFault) -> Result
  ) throws(SealRequestFault) -> Result {
    do throws(AuthenticatorFault) { return try body() } catch { throw .authenticator(error) }
  }
}

extension CheckedSealRequest {
  fileprivate var neededChallenge: DeviceChallenge? { record.needsChallenge ? challenge : nil }

  fileprivate func checkExpiry<Time: Clock & ~Copyable>(_ clock: borrowing Time) throws(SealRequestFault) {
    guard let expires else { return }
    guard let now = clock.unixSeconds(), let seconds = Int64(exactly: now) else {
      throw .authenticator(.clockOutOfRange)
    }
    let (devices, overflows) = seconds.addingReportingOverflow(record.clockOffsetSeconds)
    guard !overflows, devices < Int64(clamping: expires) else { throw .expired }
  }
}

extension SealRequest {
  /// Whether these texts are in the form that is sealed.
  package func isExactly(_ command: String, _ parameters: [String]) -> Bool {
    self.command.utf8.elementsEqual(command.utf8) && self.parameters.count == parameters.count
      && zip(self.parameters, parameters).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }
}
