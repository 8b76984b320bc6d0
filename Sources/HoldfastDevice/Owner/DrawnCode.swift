import HoldfastCore
import HoldfastOpenSSL

/// One of the owner's codes, new, and what a device keeps of it.
struct DrawnCode: ~Copyable {
  private let code: OneUseCode
  let key: Secret<32>

  /// Throws `failed`.
  init<Random: RandomSource & ~Copyable>(
    _ purpose: OneUseCode.Purpose, random: inout Random
  ) throws(LedgerFault) {
    let code = try Self.draw(&random)
    key = try Self.key(of: code, for: purpose)
    self.code = code
  }

  private static func draw<Random: RandomSource & ~Copyable>(_ random: inout Random) throws(LedgerFault) -> OneUseCode {
    do throws(RandomFailure) { return try OneUseCode.random(using: &random) } catch { throw .failed }
  }

  private static func key(
    of code: borrowing OneUseCode, for purpose: OneUseCode.Purpose
  ) throws(LedgerFault) -> Secret<32> {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try code.key(for: purpose, using: &cryptography) } catch { throw .failed }
  }

  consuming func intoCode() -> OneUseCode { code }

  /// Whether a user may be activated with such codes: there is one kind at least, and a device can verify each.
  static func canActivate(otp: CodeMethod?, seal: CodeMethod?) -> Bool {
    guard otp != nil || seal != nil else { return false }
    return (otp.map { CodeAccount.canVerify($0, for: .otp) } ?? true)
      && (seal.map { CodeAccount.canVerify($0, for: .seal) } ?? true)
  }
}
