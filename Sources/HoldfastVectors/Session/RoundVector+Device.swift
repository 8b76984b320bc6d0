import HoldfastCore
import HoldfastOpenSSL
import HoldfastReplay

extension RoundVector {
  /// Lets the device's session answer M2, with a policy that allows everything and a store that forbids nothing.
  ///
  /// Only for an accepted round whose reply is a result and nothing else: other statuses, and what a device says beside a
  /// result, come from a state that the vector does not describe. For the same reason a verdict of rules, not of keys, is
  /// not held against the vector.
  func checkDeviceSession(for parties: Parties, token: borrowing VerifiedToken) throws(Refusal) {
    guard status == Status.accepted.rawValue, let reply, let result = Self.bareResult(reply) else { return }
    var device = try makeDevice(for: parties, token: token)
    let status: Status
    do throws(EncodingFault) {
      status = try device.answer(m2.span, to: m1.span, result: result.span)
    } catch { throw Refusal(reason: "device: \(error)") }
    switch status {
    case .accepted: try Refusal.unless(array(device.verdict), m3, "device's m3")
    case .tokenRevoked, .tokenExpired, .versionTooOld, .usesExhausted, .commandRefused, .factorMissing: break
    default: throw Refusal(reason: "device: \(status)")
    }
  }

  /// The result in a reply that has nothing else.
  private static func bareResult(_ reply: [UInt8]) -> [UInt8]? {
    do throws(EncodingFault) {
      let reply = try Reply(reply.span)
      return reply.notice == Notice() ? array(reply.result.bytes) : nil
    } catch { return nil }
  }

  private func makeDevice(
    for parties: Parties, token: borrowing VerifiedToken
  ) throws(Refusal) -> GivenDevice<OpenSSLCryptography, P256PrivateKey> {
    var cryptography = OpenSSLCryptography()
    let reference: TokenReference
    do throws(CryptographyFailure) {
      reference = try tokenReference(wholeToken.span, using: &cryptography)
    } catch { throw Refusal(reason: "no reference") }
    let key: P256PrivateKey
    do throws(CryptographyFailure) { key = try parties.deviceKey() } catch { throw Refusal(reason: "no device key") }
    var device = GivenDevice(
      deviceID: parties.deviceID, keyID: parties.deviceKeyID, key: key, issuers: parties.trust,
      cryptography: cryptography)
    device.remember(token, as: reference)
    return device
  }
}
