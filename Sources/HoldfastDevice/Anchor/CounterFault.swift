/// Why the counter that anchors a device could not be used.
public enum CounterFault: Error, Equatable, Sendable {
  /// There is no TPM: nothing at its path, nothing that could be one, or nobody who listens.
  case notThere
  case noPermission
  /// It did not answer in time, or went away in the middle.
  case silent
  /// What it answered is no answer of a TPM 2.0.
  case malformed
  /// It has no such counter: another TPM, or the counter was removed.
  case notDefined
  /// Something else stands at the counter's index: it does not take this device's authorization, or does not count.
  case notOurs
  /// Defining: the index is in use.
  case taken
  /// Defining: it has no room left.
  case full
  /// Defining or removing: its owner has set a password.
  case ownerOnly
  /// It refused for another reason: a response code of Part 2 §6.6.
  case refused(code: UInt32)
}
