/// Why a command was refused, or was accepted but not carried out.
///
/// The result of a sealed M3 says it as one word in ASCII, under `commandRefused`, `busy` and `internal`: the peer has proved
/// itself by then. Source: docs/protocol.md, Statuses.
public enum Refusal: UInt8, Sendable, CaseIterable {
  /// Policy does not know the command, or does not allow it in a compatibility round.
  case notInPolicy
  /// The token has a list of commands, and this one is not in it.
  case notInToken
  /// A code that the command needs is of another user than the token's or the other code's, or `host-code` or `user-sync` names
  /// another user.
  case anotherUser
  /// The command needs a seal, and a parameter is longer than policy lets a person read.
  case parameterTooLong
  /// The request repeats the number of an earlier one, but asks for another command or other parameters.
  case anotherCommand
  /// `host-code` names a user who was given a challenge less than a minute ago.
  case challengePending
  /// Policy and token allow the command, but the device has nothing that carries it out.
  case unknownToActuator

  /// The word in the result, at most 17 bytes of ASCII.
  public var word: StaticString {
    switch self {
    case .notInPolicy: "notInPolicy"
    case .notInToken: "notInToken"
    case .anotherUser: "anotherUser"
    case .parameterTooLong: "parameterTooLong"
    case .anotherCommand: "anotherCommand"
    case .challengePending: "challengePending"
    case .unknownToActuator: "unknownToActuator"
    }
  }

  /// Reads the result of a denial; nil for a word that this version does not know.
  public init?(word: Span<UInt8>) {
    for refusal in Refusal.allCases where word.elementsEqual(refusal.word) {
      self = refusal
      return
    }
    return nil
  }
}
