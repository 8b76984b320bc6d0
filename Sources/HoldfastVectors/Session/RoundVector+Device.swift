import HoldfastCore
import HoldfastOpenSSL

extension RoundVector {
  /// Lets the device's session answer M2, with a policy that allows everything and a store that forbids nothing.
  ///
  /// Only for an accepted round whose reply is a result and nothing else: other statuses, and what a device says beside a
  /// result, come from a state that the vector does not describe. For the same reason a verdict of rules, not of keys, is
  /// not held against the vector.
  func checkDeviceSession(for parties: Parties, token: consuming VerifiedToken) throws(Refusal) {
    guard status == Status.accepted.rawValue, let reply, let result = Self.bareResult(reply) else { return }
    var session = try makeDevice(for: parties, token: token)
    do throws(EncodingFault) { try session.beginRound(challenge: m1.span) } catch {
      throw Refusal(reason: "device: \(error)")
    }
    var actuator = GivenResult(result: result)
    let response = session.respond(to: m2.span, waitedMilliseconds: 0, actuator: &actuator)
    switch response.status {
    case .accepted: try Refusal.unless(array(session.outgoing.bytes), m3, "device's m3")
    case .tokenRevoked, .tokenExpired, .versionTooOld, .usesExhausted, .commandRefused, .factorMissing: break
    default: throw Refusal(reason: "device: \(response.status)")
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
    for parties: Parties, token: consuming VerifiedToken
  ) throws(Refusal) -> DeviceSession<
    OpenSSLCryptography, P256PrivateKey, GivenStore, PermissivePolicy, GivenRandom, NoClock
  > {
    var cryptography = OpenSSLCryptography()
    let reference: TokenReference
    do throws(CryptographyFailure) {
      reference = try tokenReference(wholeToken.span, using: &cryptography)
    } catch { throw Refusal(reason: "no reference") }
    let key: P256PrivateKey
    do throws(CryptographyFailure) { key = try parties.deviceKey() } catch { throw Refusal(reason: "no device key") }
    return DeviceSession(
      deviceID: parties.deviceID, keyID: parties.deviceKeyID, cryptography: cryptography, key: key,
      store: GivenStore(issuers: parties.trust, reference: reference, token: token), policy: PermissivePolicy(),
      random: GivenRandom(bytes: proverRandom), clock: NoClock(),
      challenges: ChallengeSource(seed: Secret(), bootCount: 0, connection: 0))
  }
}

/// A store that remembers one token and has recorded nothing.
private struct GivenStore: DeviceStore, ~Copyable {
  let issuers: TrustedIssuers
  let reference: TokenReference
  let token: VerifiedToken

  func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { issuers.trustedIssuer(keyID) }
  func clockFloor() -> UInt64 { 0 }
  func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    guard reference == self.reference else { return false }
    token.set(self.token)
    return true
  }
  func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {}
  func settle(_ round: borrowing Round, _ decision: inout Decision, judge: Judge) {
    judge(round, LedgerSnapshot(clockFloor: 0), &decision)
  }
  func codeSecret(of userID: UInt64, _ purpose: CodePurpose) -> CodeSecret? { nil }
  func user(named name: BoundedText<32>) -> UserRecord? { nil }
  func challenge(_ name: BoundedText<32>, with fresh: FixedBytes<8>, realClock: UInt64?) -> UInt64? { nil }
  func oneUseCode(at index: Int) -> OneUseCodeRecord? { nil }
  func activate(_ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?) -> Bool { false }
  func unlock(_ codeID: UInt64, realClock: UInt64?) -> Bool { false }
  func countUnproved(_ status: Status) {}
}

/// A policy under which every command needs no more than the device.
private struct PermissivePolicy: Policy {
  func rule(for command: BoundedText<32>) -> CommandRule? { CommandRule(factors: .device) }
  var limits: TokenLimits { TokenLimits() }
  var commonFactors: Factors { .device }
  var codeLimits: CodeLimits { CodeLimits() }
  var acceptsUnsigned: Bool { false }
  var acceptsMAC: Bool { false }
  var maximumIssueAdvanceSeconds: UInt64 { .max }
}

private struct NoClock: Clock {
  func unixSeconds() -> UInt64? { nil }
  func monotonicMilliseconds() -> UInt64 { 0 }
}

/// Carries out every command with the vector's result.
private struct GivenResult: Actuator {
  let result: [UInt8]

  func perform(_ request: borrowing Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(self.result.span) } catch { throw ActuatorFailure() }
  }
}
