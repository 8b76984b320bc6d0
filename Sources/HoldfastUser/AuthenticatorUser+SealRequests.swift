import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastProver
import HoldfastTransport

/// A device's request for a seal, as the app with the connection received it. The user's authenticator checks it with
/// `Authenticator.check(_:clock:)`, on this host or on another one.
public struct ReceivedSealRequest: Sendable, Hashable {
  /// The text, at most 700 bytes of ASCII without an end of line, for a QR code or a file.
  public let text: String
  /// The device that made the request.
  public let device: DeviceID
  /// The time at which the request expires, in Unix seconds of the device's clock; nil if the device has no clock.
  public let expires: UInt64?
}

extension AuthenticatorUser {
  /// Asks a device for the data with which a user can be asked for the seal over a command. The command is not sent.
  ///
  /// To send it, prove again, with the seal or the refusal as the request's code: the device carries it out, or records the refusal
  /// (`ProofOutcome.isRefusalRecorded`).
  ///
  /// Source: docs/protocol.md, Seal requests.
  ///
  /// - Parameters:
  ///   - user: the name of the user, 1 to 32 bytes.
  ///   - sealed: the command and at most 6 parameters.
  ///   - prover: the app that proves itself to the device, whose policy must name `seal-request`.
  ///   - endpoint: the address at which the device serves.
  ///   - options: the device that must answer, and the time.
  /// - Throws: ``UserExchangeError``: `unknownUser` also for a user without host codes, `malformedAnswer` if the answer is not a
  ///   request for exactly this seal, `notAccepted` if the device refuses, or if the text would be too long.
  public static func sealRequest(
    for user: String, over sealed: SealRequest, as prover: Prover, at endpoint: Endpoint,
    options: ProofOptions = ProofOptions()
  ) throws(UserExchangeError) -> ReceivedSealRequest {
    let inquiry = DeviceInquiry(prover, .endpoint(endpoint), options)
    let (device, answer) = try inquiry.ask(UserCommandName.sealRequest, [user, sealed.command] + sealed.parameters)
    guard !answer.isEmpty else { throw .unknownUser }
    let contents: SealRequestContents
    do throws(SealRequestTextFault) { contents = try UncheckedSealRequest(answer).contents } catch {
      throw .malformedAnswer
    }
    guard contents.device == device, contents.user.utf8.elementsEqual(user.utf8),
      sealed.isExactly(contents.command, contents.parameters)
    else { throw .malformedAnswer }
    return ReceivedSealRequest(
      text: String(decoding: answer, as: UTF8.self), device: device, expires: contents.expires)
  }
}
