/// What a command needs beside a valid token.
public struct Factors: OptionSet, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The app is untampered: a right integrity proof.
  public static let integrity = Factors(rawValue: 1)
  /// It runs on the same device: a right device proof.
  public static let device = Factors(rawValue: 2)
  /// The right person: a one-time password.
  public static let otp = Factors(rawValue: 4)
  /// The right person, for exactly this command: a seal.
  public static let seal = Factors(rawValue: 8)

  /// All four.
  public static let all: Factors = [.integrity, .device, .otp, .seal]
}
