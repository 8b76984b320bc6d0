import HoldfastAuthenticator
import HoldfastCore
import HoldfastProver

/// The reasons why an exchange of a user with a device failed. They contain no secrets.
public enum UserExchangeError: Error {
  /// The device could not be reached, did not follow the protocol, refused the code, or is not the one that the code or the
  /// enrolment is for.
  case exchange(ProverError)
  /// The authenticator cannot be used.
  case authenticator(AuthenticatorFault)
  /// There are records of the user with this name already, and no replacement was requested.
  case alreadyActivated(String)
  /// The user's records are stored, and it is not known whether the device has added the user, because the connection ended.
  case unknownEnd(ActivatedUser, ProverError)
  /// The device's verdict on the request is a denial, or says that a request with its number was answered before.
  case notAccepted(ProofOutcome)
  /// The device does not know the user.
  case unknownUser
  /// The user's records belong to another device than those that are enrolled, or than the one that answered.
  case recordsOfAnotherDevice
  /// The device did not complete the user's last activation.
  case notActivated
  /// The device accepted the command without a password, so that no PIN was checked.
  case nothingChecked
  /// The device's host code is wrong: it does not know the user's secrets. No code was made for it.
  case wrongHostCode
  /// The device's answer to an accepted request does not follow the protocol.
  case malformedAnswer
  /// There is no clock, or it is out of range.
  case noClock
}
