#if !hasFeature(Embedded)
/// The reasons why a code was rejected, and the refusals of seals, for devices that know them: see
/// ``Policy/knowsSealRequests``. A microcontroller has no room for them.
extension DeviceSession {
  /// Looks for more than the codes that would be accepted: for the refusal of a seal, and for codes that were good before. The
  /// attempt is recorded already, as a failure.
  ///
  /// Timing: the search for a refusal is made for every seal, so it does not reveal what was found.
  @inline(never)
  mutating func findReasons(
    _ request: borrowing Request, _ decision: borrowing Decision, round: borrowing AppraisalInput
  ) throws(DeviceFault) -> RejectionFindings {
    var findings = RejectionFindings()
    guard let user = decision.user, let matches = round.matches else { return findings }
    let needed = round.factors ?? []
    let now = try now()
    for purpose in CodePurpose.given where needed.contains(purpose.factor) {
      guard let given = request.codes[purpose], let account = user.accounts[purpose] else { continue }
      if purpose == .seal {
        let window = CodeWindow(account, of: user, now: now, limits: policy.codeLimits)
        let question = try refusalQuestion(of: request, account, challenge: decision.attempt?.challenge)
        findings.refusal = try position(of: given.code, account, purpose, of: user, question, within: window.near)
      }
      if case .near = matches.results[purpose] { continue }
      findings.reasons[purpose] = try reason(request, given.code, account, purpose, of: user, now: now)
    }
    return findings
  }

  /// Returns why a code that is not accepted was not; nil if it is none of the user's codes of the recent past. A code over a
  /// challenge has no past.
  private mutating func reason(
    _ request: borrowing Request, _ given: BoundedText<16>, _ account: CodeAccount, _ purpose: CodePurpose,
    of user: UserRecord, now: UInt64
  ) throws(DeviceFault) -> Refusal? {
    guard !account.needsChallenge(for: purpose) else { return nil }
    let past = CodeWindow.past(account, of: user, now: now, limits: policy.codeLimits)
    let question = try question(of: request, account, purpose, challenge: nil)
    guard let position = try position(of: given, account, purpose, of: user, question, within: past) else { return nil }
    return position < account.nextPosition ? .codeUsed : .codeTooOld
  }

  /// Returns the question of the refusal of `request`: the device's challenge, if the suite needs one, and the digest.
  private mutating func refusalQuestion(
    of request: borrowing Request, _ account: CodeAccount, challenge: IssuedChallenge?
  ) throws(DeviceFault) -> OCRAQuestion? {
    guard case .ocra(let suite) = account.method else { return nil }
    var text = ByteBuffer<80>()
    do throws(EncodingFault) {
      if account.needsChallenge, let challenge { try text.appendHexadecimal(challenge.bytes.bytes) }
    } catch { throw .encoding }
    do throws(CryptographyFailure) {
      let digest = try HoldfastCore.refusalQuestion(
        command: request.command, parameterCount: request.parameterCount ?? 0, parameter: { request.parameter($0) },
        using: &cryptography)
      do throws(EncodingFault) { try text.append(digest.bytes) } catch { throw CryptographyFailure() }
    } catch { throw .cryptography }
    return OCRAQuestion(text.bytes, for: suite)
  }

  /// Returns the first of `positions` whose code is `given`.
  private mutating func position(
    of given: BoundedText<16>, _ account: CodeAccount, _ purpose: CodePurpose, of user: UserRecord,
    _ question: OCRAQuestion?, within positions: Range<UInt64>
  ) throws(DeviceFault) -> UInt64? {
    guard let secret = try store.codeSecret(of: user.id, purpose) else { return nil }
    let bytes = question?.bytes ?? FixedBytes<128>()
    let search = CodeSearch(
      account: account, window: CodeWindow(only: positions), question: question == nil ? nil : bytes.bytes)
    do throws(CryptographyFailure) {
      guard case .near(let position) = try search.find(given, key: secret.bytes, using: &cryptography) else {
        return nil
      }
      return position
    } catch { throw .cryptography }
  }
}

/// The results of looking at rejected codes again.
struct RejectionFindings {
  /// The position at which the given seal is the refusal of the command; nil if it is not.
  var refusal: UInt64?
  /// The reasons, one for each kind of code that was not found and was good before.
  var reasons = ByPurpose<Refusal>()
}

extension Decision {
  /// Adds the reason to the rejection of a code, or turns it into a recorded refusal.
  mutating func explain(
    _ findings: RejectionFindings, _ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot
  ) {
    guard round.matches != nil, status == .otpRejected || status == .sealRejected else { return }
    if status == .sealRejected, let position = findings.refusal, refuse(at: position, round, ledger) { return }
    notice.refusal = findings.reasons[status == .sealRejected ? .seal : .otp]
  }

  /// Records a refusal, if its position is not used up. Its attempt was no failure; those before it stay.
  private mutating func refuse(
    at position: UInt64, _ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot
  ) -> Bool {
    guard var known = user.take() else { return false }
    defer { user = known }
    let now = max(ledger.clockFloor, round.realClock ?? 0)
    guard known.useUp(.seal, .near(position: position), at: now) else { return false }
    known.takeBackAttempt()
    keepNumber(round, ledger)
    if request?.highest == round.requestNumber { request?.outcome = .sealRejected }
    notice.retryAfterSeconds = nil
    notice.refusal = .refusedByUser
    return true
  }

  /// Adds the reason if a code has nothing to cover, so that it was not even compared.
  mutating func explainMissingChallenge(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) {
    guard status == .otpRejected || status == .sealRejected, attempt == nil, round.matches == nil,
      let user = ledger.user
    else { return }
    let now = max(ledger.clockFloor, round.realClock ?? 0)
    for purpose in CodePurpose.given where (round.factors ?? []).contains(purpose.factor) {
      guard let account = user.accounts[purpose] else { return }
      guard account.needsChallenge(for: purpose) else { continue }
      if let challenge = user.challenge, round.isIssuedHere(challenge, for: account, purpose) {
        if now >= challenge.expires { notice.refusal = .challengeExpired }
      } else {
        notice.refusal = .noChallenge
      }
      return
    }
  }
}

extension UserRecord {
  /// Takes back the last attempt, which was a refusal. Earlier failures stay, and count as failures of every kind that is noted.
  fileprivate mutating func takeBackAttempt() {
    guard failureCount > 1 else { return unlock() }
    failureCount -= 1
    lockedUntil = 0
  }
}

extension CodeWindow {
  /// The number of positions that are looked at again. With many, a thief of an authenticator's file who sends the code that most
  /// PINs make at some position of the past would test more of them for each failure.
  private static var pastCount: UInt64 { 3 }

  /// Returns the positions of the recent past, whose codes are not accepted any more.
  fileprivate static func past(
    _ account: CodeAccount, of user: UserRecord, now: UInt64, limits: CodeLimits
  ) -> Range<UInt64> {
    let next = account.nextPosition
    guard !account.method.isCounted else { return next - min(next, pastCount)..<next }
    var unused = account
    unused.nextPosition = 0
    let window = CodeWindow(unused, of: user, now: now, limits: limits)
    let end = min(max(next, window.near.lowerBound), window.far.upperBound)
    let first = max(window.far.lowerBound, end - min(end, pastCount))
    return first..<max(end, first)
  }
}
#endif
