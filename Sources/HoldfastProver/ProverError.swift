import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastTransport

/// The reason why a prover could not do what it was asked for. It contains names of files and ids, never secrets.
public enum ProverError: Error {
  /// The state folder cannot be used.
  case state(StateFolderFault)
  /// The app or its host could not be measured. No component is skipped instead.
  case measurement(MeasurementError)
  /// The connection could not be made, or failed.
  case transport(TransportError)
  /// The other end did not follow the protocol of a proof, or is not the device.
  case session(ProverFault)
  /// The other end did not follow the protocol of an activation, or refused it.
  case activation(ActivationFault)
  /// The next request cannot be numbered.
  case requestNumber(RequestNumberFault)
  /// The system has no thread for it.
  case noThread
  /// Another proof of this process is running over the channel. It goes on, and the channel stays as it is.
  case channelInUse
  /// The prover itself refuses to prove. Nothing was sent.
  case refused(ProofRefusal)
  /// The nonce of a proof has its top bit set, as only those of sessions have.
  case reservedNonce
  /// The rules about the posture refuse, or were refused.
  case posture(PostureFault)
  /// The bulletins of a service are not such.
  case malformedMail
  /// The answer of a service about an enrolment is not one, or is about another token.
  case malformedAnswer
  /// It was cancelled. If the request had been sent, the device may still carry it out.
  case cancelled
}

extension ProverError {
  init(_ error: TransportError) { self = error == .cancelled ? .cancelled : .transport(error) }
}

/// The reasons why a prover's state folder cannot be used. They contain names of files and ids, never contents.
public enum StateFolderFault: Error {
  /// A file or folder could not be read or written.
  case file(FileError)
  /// A file of an enrolment is missing.
  case missing(path: String)
  /// A file is damaged or belongs to another enrolment.
  case damaged(path: String)
  /// Another version wrote `enrolment.json`.
  case otherVersion(path: String)
  /// No device is enrolled.
  case nothingEnrolled
  /// The device that answers or was named is not enrolled; `enrolled` lists those that are.
  case notEnrolled(DeviceID, enrolled: [DeviceID])
  /// Several devices are enrolled, and the caller must name one of them.
  case severalEnrolled([DeviceID])
  /// The caller named one device, but another one answers.
  case anotherDevice(DeviceID, expected: DeviceID)
  /// The enrolled device answers with another key.
  case anotherKey(DeviceID, enrolled: KeyID, answered: KeyID)
  /// The device is already enrolled, and no replacement was requested.
  case alreadyEnrolled(DeviceID)
  /// A baseline already waits for its token, and no replacement was requested.
  case baselineWaits(path: String)
  /// There is no baseline for which a token could be issued.
  case noBaseline(DeviceID)
  /// The bytes are not a measurement token, by their form.
  case notAToken
  /// The terms are not signed by the key that they name, or belong to another token.
  case badTerms
  /// An enrolled device already uses the baseline.
  case usedBaseline(DeviceID)
  /// Another process has enrolled for the device meanwhile. The newer enrolment stays.
  case replaced(DeviceID)
  /// Another process is changing the folder.
  case busy
  /// The file system cannot replace a folder in one step.
  case noExchange(path: String)
  /// The cryptographic library failed.
  case cryptography
}

/// The reasons why a request to a device cannot be numbered.
public enum RequestNumberFault: Error {
  /// The numbers of the enrolment are used up: the file at `path` has the last one, 2^53 - 1.
  case exhausted(path: String)
  /// Another process holds the lock on the file at `path`.
  case locked(path: String)
  /// The file could not be read or written.
  case file(FileError)
}

/// Something that a prover's owner should know, although the prover goes on.
public enum ProverWarning: Sendable {
  /// The file with the last request number is damaged; numbers continue from the clock.
  case damagedRequestNumber(path: String)
  /// The last request number could not be written; numbers rise only with the clock.
  case unwrittenRequestNumber(FileError)
  /// The highest number that the device has seen could not be recorded. The device sends it again.
  case unrecordedRequestNumber(RequestNumberFault)
  /// It could not be recorded that the device has the token; the next proof sends the whole token again.
  case unrecordedToken(StateFolderFault)
  /// The rules about the posture, with that number, warn of these findings.
  case posture(rules: UInt64, findings: [String])
  /// Newer rules about the posture should have been installed by that time, in Unix seconds.
  case outdatedPostureRules(number: UInt64, until: UInt64)
  /// The last tenth of the time for which the issuer allows to be offline has begun.
  case offlineLimitNear(DeviceID, OfflineLimit)
  /// A version does not comply with a rule of the issuer that only warns.
  case notCompliant(DeviceID, ComplianceFinding)
  /// The host's clock is behind a time that has already been: `latest`. The later one counts. Both are Unix seconds.
  case clockBehind(DeviceID, clock: UInt64, latest: UInt64)
  /// The present time could not be recorded, so that a clock that is set back later may not be noticed.
  case unrecordedTime(StateFolderFault)
  /// The terms of the new enrolment have another issuer's key than those that they replace.
  case anotherIssuerKey(DeviceID)
}
