extension DeviceSession
where
  Crypto: ~Copyable, Key: ~Copyable, Store: ~Copyable, Rules: ~Copyable, Random: ~Copyable, Time: ~Copyable
{
  /// Goes through the statuses in the order of docs/protocol.md, Statuses; the first that applies is returned.
  ///
  /// Once the peer has proved the device measurement, the sealed M3 is left in `outgoing`; before, nothing is.
  @inline(never)
  mutating func judge<Machine: Actuator & ~Copyable>(
    _ message: Span<UInt8>, waitedMilliseconds: UInt64, actuator: inout Machine
  ) -> Status {
    let answer: Answer
    do throws(EncodingFault) { answer = try Answer(message) } catch { return .malformed }
    guard isChallengeOpen, waitedMilliseconds <= Self.challengeLifetimeMilliseconds else { return .challengeExpired }
    var token = VerifiedToken()
    if let denial = obtain(&token, from: answer) ?? check(token) { return denial }
    credential = .token(verifyingKey: token.verifyingKey, token.claims.tokenID)
    switch answer.form {
    case .session(let head, let sealed):
      return judgeSession(answer, head: head, sealed: sealed, token: token, actuator: &actuator)
    case .compatibility(let nonce, let command):
      return judgeCompatibility(answer, nonce: nonce, command: command, token: token, actuator: &actuator)
    }
  }

  /// Recalls or opens the token; nil when that worked.
  private mutating func obtain(_ token: inout VerifiedToken, from answer: borrowing Answer) -> Status? {
    if answer.encoding == .reference {
      guard let reference = TokenReference(answer.token) else { return .tokenUnknown }
      return store.recall(reference, into: &token) ? nil : .tokenUnknown
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

  /// Nil when the token is for this device, its issuer is trusted now in this way, and its `iat` is not in an unlikely future.
  private mutating func check(_ token: borrowing VerifiedToken) -> Status? {
    guard token.claims.audience == deviceID else { return .tokenInvalid }
    if let verifyingKey = token.verifyingKey {
      guard let issuer = store.trustedIssuer(verifyingKey), policy.acceptsMAC || !issuer.isMAC else {
        return .tokenInvalid
      }
    } else {
      guard policy.acceptsUnsigned else { return .tokenInvalid }
    }
    let floor: UInt64
    do throws(StoreFailure) { floor = try store.clockFloor() } catch { return .internal }
    // A real clock so far behind the floor has lost the time: by it, every token would be one of the future.
    let latest = min(
      floor.addingClamped(policy.maximumIssueAdvanceSeconds),
      clock.unixSeconds().map { max($0.addingClamped(secondsPerDay), floor) } ?? .max)
    return token.claims.issuedAt <= latest ? nil : .tokenInvalid
  }

  @inline(never)
  private mutating func judgeSession<Machine: Actuator & ~Copyable>(
    _ answer: borrowing Answer, head: Span<UInt8>, sealed: Span<UInt8>, token: borrowing VerifiedToken,
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
    let settled = settle(token, proofs, request: request, nonce: nil)
    // Trust ended while the round was under way: nobody has proved anything.
    if settled.status == .tokenInvalid { return .tokenInvalid }
    return conclude(settled, request, token, keys: keys, transcript: transcript, actuator: &actuator)
  }

  /// Carries out what was accepted, unless it was carried out before, and answers under the seal.
  @inline(never)
  private mutating func conclude<Machine: Actuator & ~Copyable>(
    _ settled: SettledRound, _ request: borrowing Request, _ token: borrowing VerifiedToken,
    keys: borrowing SessionKeys, transcript: Transcript, actuator: inout Machine
  ) -> Status {
    var reply = Reply(notice: settled.notice)
    if let refusal = settled.notice.refusal { reply.result.append(refusal) }
    var status = settled.status
    if settled.isToBePerformed {
      status = perform(request, on: &actuator, result: &reply.result)
      if let number = request.number {
        store.keepOutcome(status, of: RequestIdentity(token, number: number))
      }
    } else {
      // The answer to a repetition may say accepted, too, and must not keep its peer's place.
      credential = nil
    }
    return seal(reply, status: status, keys: keys, transcript: transcript)
  }

  @inline(never)
  private mutating func judgeCompatibility<Machine: Actuator & ~Copyable>(
    _ answer: borrowing Answer, nonce: FixedBytes<16>, command: BoundedText<32>, token: borrowing VerifiedToken,
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
    let settled = settle(token, proofs, request: request, nonce: nonce)
    return settled.isToBePerformed ? performSilently(request, on: &actuator) : settled.status
  }

  /// Nobody hears what a compatibility round gives.
  @inline(never)
  private mutating func performSilently<Machine: Actuator & ~Copyable>(
    _ request: borrowing Request, on actuator: inout Machine
  ) -> Status {
    var result = ByteBuffer<1024>()
    return perform(request, on: &actuator, result: &result)
  }
}

private var secondsPerDay: UInt64 { 86_400 }

extension UInt64 {
  /// The sum, or the largest value where it does not fit.
  fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
