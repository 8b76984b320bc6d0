import HoldfastCore
import HoldfastFormats

/// The requests for seals, which a device on Linux makes.
extension SessionStore {
  /// Writes the request as text, with a code under the user's host secret. Nothing is written for a user who is unknown or has no
  /// such secret.
  package mutating func writeSealRequest(
    over request: borrowing Request, into result: inout ResultBuffer
  ) throws(ActuatorFailure) {
    guard let sealed = SealedCommand(request) else { throw ActuatorFailure() }
    let challenge: IssuedChallenge
    let found: CodeSecret?
    do throws(DeviceFault) {
      guard let user = try user(named: sealed.user), let issued = user.challenge else { return }
      challenge = issued
      found = try codeSecret(of: user.id, .host)
    } catch { throw ActuatorFailure() }
    guard let secret = found else { return }
    let text: [UInt8]?
    do throws(CryptographyFailure) { text = try contents(of: sealed, challenge).text(under: secret.bytes) } catch {
      throw ActuatorFailure()
    }
    guard let text else {
      throw ActuatorFailure(.failed, text: BoundedText("the request for the seal would be too long"))
    }
    do throws(EncodingFault) { try result.append(text.span) } catch { throw ActuatorFailure() }
  }

  private func contents(of sealed: SealedCommand, _ challenge: IssuedChallenge) -> SealRequestContents {
    let parameters = sealed.parameters.map { $0.description }
    return SealRequestContents(
      device: deviceID, user: sealed.user.description, command: sealed.command.description, parameters: parameters,
      challenge: challenge.bytes, expires: hasClock ? challenge.expires : nil,
      text: template(for: sealed.command)?.filled(with: parameters))
  }
}
