/// The appraisal of an M2: the message in, the status out. Each function below stands in the order in which it is needed.
extension DeviceSession {
  /// Checks the statuses in the order of docs/protocol.md, Statuses, and returns the first that applies.
  ///
  /// In a session round, once the peer has proved the device measurement (DM), the sealed M3 is left in `outgoing`. In
  /// any other case `outgoing` stays empty.
  @inline(never)
  package mutating func appraise<Machine: Actuator & ~Copyable>(
    _ message: Span<UInt8>, waitedMilliseconds: UInt64, actuator: inout Machine
  ) -> Status {
    let answer: ProofMessage
    do throws(EncodingFault) { answer = try ProofMessage(message) } catch { return .malformed }
    guard isChallengeOpen, waitedMilliseconds <= Self.challengeLifetimeMilliseconds else { return .challengeExpired }
    var token = AuthenticatedToken()
    if let denial = obtain(&token, from: answer) ?? check(token) { return denial }
    credential = .token(verifyingKey: token.verifyingKey, token.claims.tokenID)
    switch answer.form {
    case .session(let head, let sealed):
      return appraiseSession(answer, head: head, sealed: sealed, token: token, actuator: &actuator)
    case .compatibility(let nonce, let command):
      return appraiseCompatibility(answer, nonce: nonce, command: command, token: token, actuator: &actuator)
    }
  }

  @inline(never)
  private mutating func appraiseSession<Machine: Actuator & ~Copyable>(
    _ answer: borrowing ProofMessage, head: Span<UInt8>, sealed: Span<UInt8>, token: borrowing AuthenticatedToken,
    actuator: inout Machine
  ) -> Status {
    let transcript: Transcript
    let keys: SessionKeys
    let proofs: (integrity: ProofResult, device: ProofResult)
    do throws(CryptographyFailure) {
      transcript = try Transcript(challenge: challenge.bytes, head: head, using: &cryptography)
      proofs = try compareProofs(answer, nonce: transcript.proofNonce, token: token)
      keys = try SessionKeys(
        proofKey: token.claims.proofKey, device: token.claims.device, transcript: transcript, using: &cryptography)
    } catch { return .internal }
    guard proofs.device == .right else { return .deviceMismatch }
    var request = Request(command: BoundedText())
    guard open(&request, from: sealed, keys: keys, transcript: transcript) else { return .malformed }
    remember(token, from: answer)
    let recorded = record(token, proofs, request: request, nonce: nil, actuator: &actuator)
    // Trust ended while the round was under way, so the peer has proved nothing.
    if recorded.status == .tokenInvalid { return .tokenInvalid }
    mail.note(token.verifyingKey, isNew: recorded.isToBePerformed || recorded.notice.isAuditLogFull)
    return actAndAnswer(recorded, request, token, keys: keys, transcript: transcript, actuator: &actuator)
  }

  @inline(never)
  private mutating func appraiseCompatibility<Machine: Actuator & ~Copyable>(
    _ answer: borrowing ProofMessage, nonce: Nonce, command: BoundedText<32>,
    token: borrowing AuthenticatedToken,
    actuator: inout Machine
  ) -> Status {
    let proofs: (integrity: ProofResult, device: ProofResult)
    do throws(CryptographyFailure) {
      proofs = try compareProofs(answer, nonce: nonce, token: token)
    } catch { return .internal }
    switch proofs {
    case (_, .wrong), (.absent, .absent): return .deviceMismatch
    case (.wrong, .absent): return .integrityMismatch
    case (_, .right): remember(token, from: answer)
    case (.right, .absent): break
    }
    let request = Request(command: command)
    let recorded = record(token, proofs, request: request, nonce: nonce, actuator: &actuator)
    return recorded.isToBePerformed ? performSilently(request, of: token, recorded, on: &actuator) : recorded.status
  }
}

/// Returns the latest time at which a token or a bulletin may have been issued, in Unix seconds.
///
/// A real clock so far behind the floor has lost the time: by that clock, everything would come from the future.
func latestIssue(floor: UInt64, advanceSeconds: UInt64, realClock: UInt64?) -> UInt64 {
  min(
    floor.addingClamped(advanceSeconds), realClock.map { max($0.addingClamped(secondsPerDay), floor) } ?? .max)
}

/// The steps of an appraisal.
extension DeviceSession {
  /// Recalls or opens the token; returns nil on success. Its memory on the stack is free again while the round is judged.
  @inline(never)
  private mutating func obtain(_ token: inout AuthenticatedToken, from answer: borrowing ProofMessage) -> Status? {
    if answer.encoding == .reference {
      guard let reference = TokenReference(answer.token), store.recall(reference, into: &token) else {
        return .tokenUnknown
      }
      return isTrusted(token) ? nil : .tokenInvalid
    }
    do throws(TokenFault) {
      try opener.open(
        answer.token, encoding: answer.encoding, key: &key, keyID: keyID, trust: &store,
        acceptsUnsigned: policy.acceptsUnsigned, acceptsMAC: policy.acceptsMAC, using: &cryptography, into: &token)
      return nil
    } catch {
      return .tokenInvalid
    }
  }

  /// Returns whether the owner still trusts the issuer of a remembered token, in the way in which it was verified.
  private mutating func isTrusted(_ token: borrowing AuthenticatedToken) -> Bool {
    guard let verifyingKey = token.verifyingKey else { return policy.acceptsUnsigned }
    guard let issuer = store.trustedIssuer(verifyingKey) else { return false }
    return policy.acceptsMAC || !issuer.isMAC
  }

  /// Returns nil if the token is for this device, its subject is one that the policy permits, and its `iat` is plausible.
  @inline(never)
  private mutating func check(_ token: borrowing AuthenticatedToken) -> Status? {
    guard token.claims.audience == deviceID,
      policy.acceptsDevelopment || !token.claims.subject.bytes.elementsEqual("development")
    else { return .tokenInvalid }
    let floor: UInt64
    do throws(DeviceFault) { floor = try store.clockFloor() } catch { return .internal }
    let latest = latestIssue(
      floor: floor, advanceSeconds: policy.maximumIssueAdvanceSeconds, realClock: clock.unixSeconds())
    return token.claims.issuedAt <= latest ? nil : .tokenInvalid
  }

  /// Computes both proofs, whether or not they were given, and compares them in constant time.
  @inline(never)
  private mutating func compareProofs(
    _ answer: borrowing ProofMessage, nonce: Nonce, token: borrowing AuthenticatedToken
  ) throws(CryptographyFailure) -> (integrity: ProofResult, device: ProofResult) {
    // The key and the nonce are hashed once for both.
    var integrity = try beginMeasurementProof(key: token.claims.proofKey, nonce: nonce, using: &cryptography)
    var device = integrity
    token.claims.integrity.withBytes { integrity.append($0) }
    token.claims.device.withBytes { device.append($0) }
    return (
      ProofResult(given: answer.integrityProof, expected: try integrity.finish()),
      ProofResult(given: answer.deviceProof, expected: try device.finish())
    )
  }

  /// Decrypts and decodes the request; returns false if it does not open or is not a request.
  @inline(never)
  private mutating func open(
    _ request: inout Request, from sealed: Span<UInt8>, keys: borrowing SessionKeys, transcript: Transcript
  ) -> Bool {
    var plaintext = SealedRequestBuffer()
    do throws(EncodingFault) { try plaintext.append(sealed) } catch { return false }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
        using: &cryptography)
    } catch { return false }
    do throws(EncodingFault) { try request.decode(plaintext.bytes) } catch { return false }
    return true
  }

  /// Remembers a token that was sent whole.
  private mutating func remember(_ token: borrowing AuthenticatedToken, from answer: borrowing ProofMessage) {
    guard answer.encoding != .reference else { return }
    do throws(CryptographyFailure) {
      store.remember(token, as: try tokenReference(answer.token, using: &cryptography))
    } catch { return }
  }

  /// Lets the store record the decision of the rules. If the store fails, the status is `internal`.
  ///
  /// The actuator reserves its place within the transaction, so that a round which the rules deny never takes one.
  private mutating func record<Machine: Actuator & ~Copyable>(
    _ token: borrowing AuthenticatedToken, _ proofs: (integrity: ProofResult, device: ProofResult),
    request: borrowing Request, nonce: Nonce?, actuator: inout Machine
  ) -> RecordedRound {
    var needsPlace = !UserCommandName.contains(request.command, under: Environment.Rules.self)
    var hasPlace = false
    do throws(DeviceFault) {
      let milliseconds = clock.monotonicMilliseconds()
      var round = AppraisalInput(
        token: token, proofs: proofs, request: request, digest: try digest(of: request), policy: policy, nonce: nonce,
        realClock: try realClock(at: milliseconds), monotonicMilliseconds: milliseconds)
      if Environment.Rules.knowsAuthenticators { try admitSpare(to: &round, request, token) }
      round.isCarriedOut = !needsPlace || actuator.carriesOut(request.command)
      round.freshChallenge = try freshChallenge(for: request)
      #if !hasFeature(Embedded)
      round.connectionChallenge = connectionChallenge
      round.transport = transport
      round.tellsBulletins = Environment.Rules.knowsBulletins && request.number != nil && nonce == nil
      #endif
      store.noteParameters(of: request)
      var decision = Decision()
      try store.record(round, &decision) { (round, ledger, decision) in
        decision.decide(round, against: ledger)
        #if !hasFeature(Embedded)
        if Environment.Rules.knowsSealRequests { decision.explainMissingChallenge(round, ledger) }
        #endif
        guard needsPlace, decision.mayAct else { return }
        hasPlace = actuator.reservePlace()
        needsPlace = !hasPlace
        if !hasPlace { decision.refuseForLackOfPlace(over: ledger) }
      }
      if decision.attempt != nil {
        round.matches = try compareCodes(request, decision, round: round)
        #if hasFeature(Embedded)
        try store.record(round, &decision) { $2.decide($0, against: $1) }
        #else
        let findings =
          Environment.Rules.knowsSealRequests ? try findReasons(request, decision, round: round) : RejectionFindings()
        try store.record(round, &decision) { (round, ledger, decision) in
          decision.decide(round, against: ledger)
          decision.explain(findings, round, ledger)
        }
        #endif
      }
      isRecorded = true
      #if !hasFeature(Embedded)
      if decision.status == .accepted, !decision.isRepetition, let issued = round.freshChallenge {
        connectionChallenge = issued
      }
      #endif
      if hasPlace, !decision.mayAct { actuator.releasePlace() }
      return RecordedRound(
        status: decision.status, factors: round.factors ?? [], notice: decision.notice,
        sequence: decision.auditSequence)
    } catch {
      if hasPlace { actuator.releasePlace() }
      return RecordedRound(status: .internal, factors: [], notice: Notice(), sequence: 0)
    }
  }

  /// Accepts that the codes are of a spare authenticator of the token's user. All codes, and the user that the command names,
  /// must be of the same one.
  private mutating func admitSpare(
    to round: inout AppraisalInput, _ request: borrowing Request, _ token: borrowing AuthenticatedToken
  ) throws(DeviceFault) {
    guard round.isAnotherUsersCode, let user = token.claims.user, let name = round.codeUser,
      !request.isAbout(
        anotherThan: name, under: Environment.Rules.self, needing: round.factors ?? []),
      try store.mainUser(of: name) == user
    else { return }
    round.isAnotherUsersCode = false
  }

  /// Returns the bytes that identify the command and parameters of a numbered request; zero for a request without a
  /// number.
  @inline(never)
  private mutating func digest(of request: borrowing Request) throws(DeviceFault) -> FixedBytes<16> {
    guard request.number != nil else { return TypedBytes() }
    do throws(CryptographyFailure) {
      let digest = try commandDigest(
        command: request.command, parameterCount: request.parameterCount ?? 0, parameter: { request.parameter($0) },
        using: &cryptography)
      return TypedBytes(digest.bytes.extracting(0..<16))!
    } catch { throw .cryptography }
  }

  /// Carries out the accepted command, unless it was carried out before, and answers under the seal.
  @inline(never)
  private mutating func actAndAnswer<Machine: Actuator & ~Copyable>(
    _ recorded: RecordedRound, _ request: borrowing Request, _ token: borrowing AuthenticatedToken,
    keys: borrowing SessionKeys, transcript: Transcript, actuator: inout Machine
  ) -> Status {
    var reply = VerdictBody(notice: recorded.notice)
    if let refusal = recorded.notice.refusal { reply.result.append(refusal) }
    var status = recorded.status
    if recorded.isToBePerformed {
      status = perform(request, of: token, recorded, on: &actuator, result: &reply.result)
      if let number = request.number {
        store.keepOutcome(status, of: RequestIdentity(token, number: number))
        if status != .accepted { reply.notice.bulletinState = nil }
      }
    } else {
      // The answer to a repetition may also be `accepted`, and must not keep its peer's place.
      credential = nil
    }
    return seal(reply, status: status, keys: keys, transcript: transcript)
  }

  private mutating func perform<Machine: Actuator & ~Copyable>(
    _ request: borrowing Request, of token: borrowing AuthenticatedToken, _ recorded: borrowing RecordedRound,
    on actuator: inout Machine, result: inout ResultBuffer
  ) -> Status {
    do throws(ActuatorFailure) {
      if try performUserCommand(request, result: &result) { return .accepted }
    } catch { return fail(error, round(of: token, request, recorded), result: &result) }
    return act(upon: request, of: token, recorded, on: &actuator, result: &result)
  }

  @inline(never)
  private mutating func act<Machine: Actuator & ~Copyable>(
    upon request: borrowing Request, of token: borrowing AuthenticatedToken, _ recorded: borrowing RecordedRound,
    on actuator: inout Machine, result: inout ResultBuffer
  ) -> Status {
    let round = round(of: token, request, recorded)
    do throws(ActuatorFailure) {
      try actuator.perform(request, of: round, result: &result)
      return .accepted
    } catch { return fail(error, round, result: &result) }
  }

  private mutating func fail(
    _ failure: ActuatorFailure, _ round: AcceptedRound, result: inout ResultBuffer
  ) -> Status {
    result.removeAll()
    result.append(failure)
    store.recordFailure(failure, of: round)
    return .internal
  }

  /// Returns the accepted round, for the actuator. It is made this late because the stack of a microcontroller has no room
  /// for it while codes are compared.
  private mutating func round(
    of token: borrowing AuthenticatedToken, _ request: borrowing Request, _ recorded: borrowing RecordedRound
  ) -> AcceptedRound {
    var user = request.codeUser(for: recorded.factors)
    if Environment.Rules.knowsAuthenticators, let name = user { user = (try? store.mainUser(of: name)) ?? name }
    return AcceptedRound(
      sequence: recorded.sequence, user: user,
      subject: token.claims.subject)
  }

  /// Carries out the command and drops its result, which no message of a compatibility round carries.
  @inline(never)
  private mutating func performSilently<Machine: Actuator & ~Copyable>(
    _ request: borrowing Request, of token: borrowing AuthenticatedToken, _ recorded: borrowing RecordedRound,
    on actuator: inout Machine
  ) -> Status {
    var result = ResultBuffer()
    return perform(request, of: token, recorded, on: &actuator, result: &result)
  }

  /// Leaves the sealed M3 in `outgoing` and returns its status. If that fails, `outgoing` stays empty and the status is
  /// `internal`.
  @inline(never)
  package mutating func seal(
    _ reply: borrowing VerdictBody, status: Status, keys: borrowing SessionKeys, transcript: Transcript
  ) -> Status {
    var sealed = SealedReplyBuffer()
    var authenticated = VerdictContext()
    do throws(EncodingFault) {
      try reply.encode(into: &sealed)
      try authenticated.append(transcript.hash.bytes)
      try authenticated.append(status.rawValue)
    } catch { return .internal }
    do throws(CryptographyFailure) {
      try sealed.seal(
        key: keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.bytes,
        using: &cryptography)
    } catch { return .internal }
    do throws(EncodingFault) {
      try VerdictMessage.encode(status, sealed: sealed.bytes, into: &outgoing)
    } catch {
      outgoing.removeAll()
      return .internal
    }
    return status
  }
}

/// The outcome of a round, as the store recorded it.
struct RecordedRound {
  let status: Status
  /// The factors that the command needed. The order of the properties leaves no gap in memory.
  let factors: Factors
  let notice: Notice
  /// The number of the round's entry in the audit log; 0 if there is none.
  let sequence: UInt64

  /// Whether the actuator must act. The answer to a repetition may also be `accepted`.
  var isToBePerformed: Bool { status == .accepted && notice.highestRequestNumber == nil }
}

extension ProofResult {
  fileprivate init(given: MAC?, expected: MAC) {
    guard let given else {
      self = .absent
      return
    }
    self = constantTimeEqual(given.bytes, expected.bytes) ? .right : .wrong
  }
}

private var secondsPerDay: UInt64 { 86_400 }

extension UInt64 {
  /// Returns the sum, or the largest value if the sum does not fit.
  fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
