/// Why text is not the JSON that Holdfast takes.
public enum JSONFault: Error {
  /// Not JSON, not UTF-8, or a number that is not a plain integer of at most 2^53 - 1.
  case malformed
  /// An object names a member twice, after unescaping.
  case duplicateMember
  /// Arrays and objects within each other more than 16 deep.
  case tooDeep
  /// More bytes than the caller allows.
  case tooLong
}
