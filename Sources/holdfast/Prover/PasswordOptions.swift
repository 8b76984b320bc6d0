import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastProver
import HoldfastUser

/// The options with which the authenticator makes the one-time password of a command.
struct MadePasswordOptions: ParsableArguments {
  @Flag(
    help:
      "Make the one-time password with --authenticator; with an OCRA suite, over a challenge of the device on this connection."
  )
  var makeOtp = false

  @OptionGroup var unlocking: UnlockingOptions

  /// Checks the options of a command whose password is not made.
  func check() throws(Failure) {
    guard !unlocking.isGiven else {
      throw Failure(.usage, "--pin-file, --key-file and --key-fd require --make-otp")
    }
  }
}

extension AuthenticatorOptions {
  /// Returns the record that makes a user's one-time passwords; `user` may be nil if there is only one.
  func passwordRecord(of user: String?) throws(Failure) -> Record {
    let folder = try open()
    return try using { () throws(AuthenticatorFault) in
      try folder.record(user: user, index: nil, purpose: .otp)
    }
  }
}

/// The options with which the device checks a PIN before it is used for something else.
struct PINCheckOptions: ParsableArguments {
  @Option(help: "For the check by the device: the state folder that enroll filled.", completion: .directory)
  var state: String?

  @Option(help: "For the check by the device: a harmless command of the device that needs a one-time password.")
  var checkCommand: String?

  /// Whether any of them is given.
  var isGiven: Bool { state != nil || checkCommand != nil }

  /// Returns the request of the check.
  func request() throws(Failure) -> Request {
    guard let checkCommand else { throw Self.incomplete }
    return try Request(command: checkCommand, parameters: [])
  }

  /// Returns the folder with the enrolment that the check needs.
  func stateFolder() throws(Failure) -> String {
    guard let state else { throw Self.incomplete }
    return state
  }

  private static var incomplete: Failure {
    Failure(.usage, "the check by the device requires --state and --check-command")
  }
}
