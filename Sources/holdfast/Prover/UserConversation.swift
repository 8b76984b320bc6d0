import ArgumentParser
import HoldfastCore
import HoldfastOpenSSL
import HoldfastTransport

/// A user's exchange with a device by one of its owner's codes, from connecting to the end.
struct UserConversation: ~Copyable {
  typealias Session = UserSession<OpenSSLCryptography, SystemRandom>

  let endpoint: Endpoint
  let timeoutMilliseconds: Int

  /// Runs the exchange; `store` must make what the device gave durable before it returns.
  ///
  /// Where it throws once `store` has returned, the device may have taken the confirmation or not.
  func run(
    _ session: consuming Session, store: (borrowing Session) throws(Failure) -> Void
  ) throws(Failure) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    var link: DeviceLink
    do throws(TransportError) {
      link = try DeviceLink(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    } catch { throw Failure(error, endpoint: endpoint) }
    var session = session
    while true {
      let message = try receive(over: &link, by: deadline)
      let step: UserStep
      do throws(UserFault) { step = try session.receive(message.span) } catch {
        throw Failure(error, endpoint: endpoint)
      }
      switch step {
      case .send: break
      case .store:
        try store(session)
        do throws(UserFault) { try session.confirm() } catch { throw Failure(error, endpoint: endpoint) }
      case .done: return
      }
      do throws(TransportError) { try link.connection.send(session.outgoing.bytes, by: deadline) } catch {
        throw Failure(error, endpoint: endpoint)
      }
    }
  }

  private func receive(over link: inout DeviceLink, by deadline: Deadline) throws(Failure) -> [UInt8] {
    do throws(TransportError) {
      return try link.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds)
    } catch { throw Failure(error, endpoint: endpoint) }
  }
}

/// One of the owner's codes, as a user gives it: never as an argument.
struct OwnersCodeOptions: ParsableArguments {
  @Option(
    help:
      "A file with the code that the device's owner gave you, or - for standard input; asked for on the terminal when absent.",
    completion: .file())
  var code: String?

  func read() throws(Failure) -> OneUseCode {
    let text: SecretBytes
    if let code {
      // Others can read the arguments of a process, and whoever has the code can become the user.
      let argument = Array(code.utf8)
      guard OneUseCode(argument.span) == nil else {
        throw Failure(
          secretGivenTo: "--code", hint: "give it in a file, or leave --code out and type it; ask for another code, too"
        )
      }
      text = try SecretInput.lineOrAnswer(code, of: "--code", question: "code", limit: 64)
    } else {
      text = try SecretPrompt.ask("code", option: "--code a file, or - for standard input")
    }
    guard let code = OneUseCode(text.bytes) else {
      throw Failure(
        .malformed, "that is not a code of a device's owner, or it was mistyped",
        hint: "it has 20 letters and digits and one to check them: XXXX-XXXX-XXXX-XXXX-XXXX-X")
    }
    return code
  }
}

extension Failure {
  /// An exchange that ended early.
  fileprivate init(_ fault: UserFault, endpoint: Endpoint) {
    switch fault {
    case .malformed:
      self.init(
        .malformed, "the other end does not speak this protocol", hint: "is \(endpoint) a Holdfast device?")
    case .refused(.otpRejected):
      self.init(
        .denied, "the device does not take the code",
        hint: "it is good for ten minutes, one use and one purpose: ask the device's owner for another")
    case .refused(let status): self.init(.denied, status.explanation.text, hint: status.explanation.hint)
    case .impostor:
      self.init(
        .impostor, "the other end does not know the code, so it is not the device whose owner gave it",
        hint: "check that \(endpoint) is the right device; do not use this one")
    case .random, .cryptography:
      self.init(.fault, "the cryptographic library or the random source failed")
    }
  }
}
