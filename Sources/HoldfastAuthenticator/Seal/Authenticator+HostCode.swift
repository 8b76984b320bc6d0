import HoldfastCore
import HoldfastOpenSSL

/// Whether it is the device, before anything is typed into it.
///
/// Source: RFC 6287 §7.2 and §7.3: the server's half of a mutual challenge and response.
extension Authenticator {
  /// A fresh challenge for the device, recorded in the place of the one before. `record` is of purpose `host`; one that
  /// was never confirmed is asked with too, which is how its device is found out.
  public func challengeDevice<Random: RandomSource & ~Copyable>(
    _ record: Record, random: inout Random
  ) throws(AuthenticatorFault) -> DeviceChallenge {
    guard record.purpose == .host else { throw .unsuitableMethod }
    let bytes: FixedBytes<8>
    do throws(RandomFailure) { bytes = try random.fixedBytes() } catch { throw .failed }
    let digits = (0..<8).map { String(UInt16(bytes[$0]) | 0x100, radix: 16).dropFirst() }.joined()
    guard let challenge = DeviceChallenge(digits) else { throw .failed }
    try tables.transaction { () throws(AuthenticatorFault) in
      var stored = try stored(record.user, record.index)
      guard stored.secret != nil else { throw .interrupted }
      stored.clientChallenge = challenge.digits
      try tables.save(stored)
    }
    return challenge
  }

  /// Whether a host code answers the last challenge and the device's own. A challenge serves one check, whatever comes of it.
  ///
  /// `code` has as many decimal digits as the record's suite says; others are `badQuestion`, and cost nothing. Throws
  /// `noChallenge`, `unsuitableMethod`, `interrupted`; `busy`, `diskFull`, `failed`. Timing: the comparison does not show
  /// where the codes differ.
  public func checkHostCode(
    _ code: String, deviceChallenge: DeviceChallenge, of record: Record
  ) throws(AuthenticatorFault) -> Bool {
    guard record.purpose == .host, case .ocra(let suite) = record.method else { throw .unsuitableMethod }
    let given = Array(code.utf8)
    guard given.count == suite.length?.digits, given.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw .badQuestion
    }
    let (secret, challenge) = try tables.transaction { () throws(AuthenticatorFault) -> (BlindedSecret, String) in
      var stored = try stored(record.user, record.index)
      guard let secret = stored.secret else { throw .interrupted }
      guard let challenge = stored.clientChallenge else { throw .noChallenge }
      stored.clientChallenge = nil
      try tables.save(stored)
      return (secret, challenge)
    }
    let key = try secret.unblinded(with: ProtectionSecret.none)
    let text = Array((challenge + deviceChallenge.digits).utf8)
    guard let question = OCRAQuestion(text.span, for: suite) else { throw .corrupt }
    do throws(CryptographyFailure) {
      let expected = try answer(suite, key: key.bytes, question: question, moment: CodeMoment())
      return constantTimeEqual(expected.bytes, given.span)
    } catch { throw .failed }
  }
}
