import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastProver
import HoldfastTransport
import HoldfastUser

/// A question of a user to a device, to which this app first proves itself, as the command line gives it.
struct DeviceInquiry {
  let endpoint: Endpoint
  private let folder: ProverFolder
  /// The device that must answer, and the time.
  var options: ProofOptions
  private let pairing: PairingOptions

  /// Parses `connect`, `state` and `device` as given on the command line.
  init(
    at connect: String, state: String, device: String?, waiting: TimeoutOptions, pairing: PairingOptions
  ) throws(Failure) {
    endpoint = try Endpoint(peerArgument: connect)
    folder = ProverFolder(path: state)
    options = ProofOptions(
      device: try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) },
      timeoutMilliseconds: try waiting.milliseconds())
    self.pairing = pairing
  }

  /// Asks with `command`, and converts errors to failures.
  func ask<Answer>(
    _ command: BoundedText<32>, _ authenticator: AuthenticatorOptions? = nil,
    _ question: (Prover, ProofOptions) throws(UserExchangeError) -> Answer
  ) throws(Failure) -> Answer {
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    do throws(UserExchangeError) {
      return try question(Prover(state: folder.path, keys: .app, warn: Console.warn), options)
    } catch { throw Failure(error, of: command, authenticator, state: folder.path, endpoint: endpoint) }
  }
}

extension AuthenticatorOptions {
  /// The person with this authenticator.
  var person: AuthenticatorUser { AuthenticatorUser(authenticator: authenticator) }
}

extension Failure {
  /// Creates the failure of an exchange of a user with a device; `command` is the one that the device was asked for.
  init(
    _ error: UserExchangeError, of command: BoundedText<32> = BoundedText(), _ authenticator: AuthenticatorOptions?,
    state: String? = nil, endpoint: Endpoint
  ) {
    switch error {
    case .exchange(let error):
      if let state { self.init(error, folder: state, endpoint: endpoint) } else { self.init(error, endpoint: endpoint) }
    case .authenticator(let fault): self.init(fault, folder: authenticator?.authenticator ?? "")
    case .alreadyActivated(let user):
      self.init(
        .denied, "there are already records of \(user), for this device or another; the code is still valid",
        hint: "use another --authenticator folder, or --replace to discard those records")
    case .unknownEnd(let activated, let error):
      let failure = Failure(error, endpoint: endpoint)
      self.init(
        failure.status, "\(failure.message); it is unknown whether the device has added \(activated.user)",
        hint: "find out with holdfast otp sync, or activate again with a new code")
    case .notAccepted(let outcome):
      if let text = outcome.actuatorText {
        self.init(.denied, "the device could not answer: \(text)")
      } else if let repetition = outcome.repetition {
        self.init(.denied, repetition.text, hint: "try again")
      } else {
        let explanation =
          outcome.verdict.notice.refusal?.explanation(of: command.description)
          ?? outcome.verdict.status.explanation
        self.init(.denied, explanation.text, hint: explanation.hint)
      }
    case .unknownUser: self.init(.denied, "the device does not know the user", hint: "holdfast otp activate")
    case .recordsOfAnotherDevice:
      self.init(
        .denied, "the user's records belong to another device",
        hint: "holdfast otp list --json shows which device; for this one, activate into a separate folder")
    case .notActivated:
      self.init(
        .denied, "the device did not complete the last activation",
        hint:
          "activate again with a new code from holdfast device user add, with --replace if there is a user with that name"
      )
    case .nothingChecked:
      self.init(
        .denied, "the command needs no one-time password, so the device checked no PIN, and nothing was changed",
        hint: "give a command that needs one, and no seal")
    case .wrongHostCode:
      self.init(
        .denied, "the device does not know the user's secrets, so no password was made for it",
        hint: "holdfast otp list --json shows which device the records are for")
    case .malformedAnswer: self.init(.malformed, "the device's answer does not follow this protocol")
    case .noClock: self.init(.fault, "the clock is before 1970 or after 2106")
    }
  }
}
