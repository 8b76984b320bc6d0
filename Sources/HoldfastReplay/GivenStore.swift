import HoldfastCore

/// A store that remembers one token and has recorded nothing.
public struct GivenStore: DeviceStore, ~Copyable {
  let issuers: TrustedIssuers
  var reference = TokenReference()
  var token = VerifiedToken()

  init(issuers: TrustedIssuers) {
    self.issuers = issuers
  }

  public func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { issuers.trustedIssuer(keyID) }
  public func clockFloor() -> UInt64 { 0 }
  public func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    guard reference == self.reference else { return false }
    token.set(self.token)
    return true
  }
  public func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {}
  public func settle(_ round: borrowing Round, _ decision: inout Decision, judge: Judge) {
    judge(round, LedgerSnapshot(clockFloor: 0), &decision)
  }
  public func keepOutcome(_ outcome: Status, of request: RequestIdentity) {}
  public func codeSecret(of userID: UInt64, _ purpose: CodePurpose) -> CodeSecret? { nil }
  public func user(named name: BoundedText<32>) -> UserRecord? { nil }
  public func oneUseCode(at index: Int) -> OneUseCodeRecord? { nil }
  public func activate(_ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?) -> Bool { false }
  public func unlock(_ codeID: UInt64, realClock: UInt64?) -> Bool { false }
  public func countUnproved(_ status: Status) {}
}

/// A policy under which every command needs no more than the device.
struct PermissivePolicy: Policy {
  func rule(for command: BoundedText<32>) -> CommandRule? { CommandRule(factors: .device) }
  var limits: TokenLimits { TokenLimits() }
  var commonFactors: Factors { .device }
  var codeLimits: CodeLimits { CodeLimits() }
  var acceptsUnsigned: Bool { false }
  var acceptsMAC: Bool { false }
  var maximumIssueAdvanceSeconds: UInt64 { .max }
}

struct NoClock: Clock {
  func unixSeconds() -> UInt64? { nil }
  func monotonicMilliseconds() -> UInt64 { 0 }
}

/// The challenges are given: a device that asks for more has failed.
struct NoRandom: RandomSource {
  func fill(_ output: inout MutableSpan<UInt8>) throws(RandomFailure) { throw RandomFailure() }
}

/// Carries out every command with a result that is given.
struct GivenResult: Actuator, ~Copyable {
  private var given = ByteBuffer<1024>()

  init(_ result: Span<UInt8>) throws(EncodingFault) {
    try given.append(result)
  }

  func perform(_ request: borrowing Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(given.bytes) } catch { throw ActuatorFailure() }
  }
}
