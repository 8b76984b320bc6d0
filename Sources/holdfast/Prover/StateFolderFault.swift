import HoldfastCore
import HoldfastStorage

/// A reason for which a prover's state folder cannot serve. It names files and ids, never contents.
enum StateFolderFault: Error {
  /// A file or folder could not be read or written.
  case file(FileError)
  /// A file of an enrolment is not there.
  case missing(path: String)
  /// A file is damaged, or belongs to another enrolment.
  case damaged(path: String)
  /// `enrolment.json` was written by another version.
  case otherVersion(path: String)
  /// No device is enrolled.
  case nothingEnrolled
  /// The device that answers, or that was asked for, is not enrolled; `enrolled` names those that are.
  case notEnrolled(DeviceID, enrolled: [DeviceID])
  /// One device was asked for, and another one answers.
  case anotherDevice(DeviceID, expected: DeviceID)
  /// The enrolled device answers with another key.
  case anotherKey(DeviceID, enrolled: KeyID, answered: KeyID)
  /// One device is needed, and several are enrolled.
  case severalEnrolled([DeviceID])
  /// The device is enrolled, and nobody asked for a replacement.
  case alreadyEnrolled(DeviceID)
  /// A baseline waits for its token, and nobody asked for a replacement.
  case baselineWaits(path: String)
  /// There is no baseline that a token could be issued for.
  case noBaseline(DeviceID)
  /// The baseline is that of an enrolled device.
  case usedBaseline(DeviceID)
  /// Another process is changing the folder.
  case busy
  /// The file system cannot replace a folder in one step.
  case noExchange(path: String)
  /// The cryptographic library failed.
  case cryptography
}
