import ArgumentParser
import HoldfastCore

/// How a user's codes are made.
struct MethodOptions: ParsableArguments {
  @Option(help: "One-time passwords: totp, hotp or none.")
  var otp: PasswordKind = .totp

  @Option(help: "Their hash: SHA1, SHA256 or SHA512.")
  var algorithm: HashName = .sha1

  @Option(help: "Their digits, 4 to 10.")
  var digits: Int = 6

  @Option(help: "The seconds of a time step, 1 to 86400.")
  var period: UInt64 = 30

  @Option(help: "The OCRA suite of seals, or none.")
  var seal: String = "OCRA-1:HOTP-SHA256-8:QH64-T1M"

  enum PasswordKind: String, ExpressibleByArgument, CaseIterable {
    case totp, hotp, none
  }

  func otpMethod() throws(Failure) -> CodeMethod? {
    guard let length = CodeLength(digits) else { throw Failure(.usage, "--digits is from 4 to 10") }
    switch otp {
    case .none: return nil
    case .hotp: return .hotp(algorithm.hash, length)
    case .totp:
      guard (1...CodeMethod.maximumPeriodSeconds).contains(period) else {
        throw Failure(.usage, "--period is from 1 to \(CodeMethod.maximumPeriodSeconds) seconds")
      }
      return .totp(algorithm.hash, length, periodSeconds: period)
    }
  }

  func sealMethod() throws(Failure) -> CodeMethod? {
    guard seal != "none" else { return nil }
    guard let suite = OCRASuite(seal) else { throw Failure(.usage, "--seal is no OCRA suite of RFC 6287") }
    return .ocra(suite)
  }
}
