extension DeviceSession
where
  Crypto: ~Copyable, Key: ~Copyable, Store: ~Copyable, Rules: ~Copyable, Random: ~Copyable, Time: ~Copyable
{
  /// Goes through DESIGN §5's list of statuses in its order; the first that applies is returned.
  ///
  /// Once the peer has proved the device measurement, the sealed M3 is left in `outgoing`; before, nothing is.
  mutating func judge<Machine: Actuator & ~Copyable>(
    _ message: Span<UInt8>, waitedMilliseconds: UInt64, actuator: inout Machine
  ) -> Status {
    let answer: Answer
    do throws(EncodingFault) { answer = try Answer(message) } catch { return .malformed }
    guard isChallengeOpen, waitedMilliseconds <= Self.challengeLifetimeMilliseconds else { return .challengeExpired }
    switch obtainToken(answer) {
    case .denied(let status):
      return status
    case .found(let token):
      switch answer.form {
      case .session(let head, let sealed):
        return judgeSession(answer, head: head, sealed: sealed, token: token, actuator: &actuator)
      case .compatibility(let nonce, let command):
        return judgeCompatibility(answer, nonce: nonce, command: command, token: token, actuator: &actuator)
      }
    }
  }

  private mutating func obtainToken(_ answer: borrowing Answer) -> TokenLookup {
    if answer.encoding == .reference {
      guard let reference = TokenReference(answer.token), let token = store.recall(reference) else {
        return .denied(.tokenUnknown)
      }
      return checked(token)
    }
    do throws(TokenFault) {
      let token = try opener.open(
        answer.token, encoding: answer.encoding, key: &key, keyID: keyID, trust: &store,
        acceptsUnsigned: policy.acceptsUnsigned, acceptsMAC: policy.acceptsMAC, using: &cryptography)
      return checked(token)
    } catch {
      return .denied(.tokenInvalid)
    }
  }

  /// The token is for this device, its issuer is trusted now in this way, and its `iat` is not in an unlikely future.
  private mutating func checked(_ token: consuming VerifiedToken) -> TokenLookup {
    guard token.claims.audience == deviceID else { return .denied(.tokenInvalid) }
    if let verifyingKey = token.verifyingKey {
      guard let issuer = store.trustedIssuer(verifyingKey), policy.acceptsMAC || !issuer.isMAC else {
        return .denied(.tokenInvalid)
      }
    } else {
      guard policy.acceptsUnsigned else { return .denied(.tokenInvalid) }
    }
    let floor: UInt64
    do throws(StoreFailure) { floor = try store.clockFloor() } catch { return .denied(.internal) }
    // A real clock so far behind the floor has lost the time: by it, every token would be one of the future.
    let latest = min(
      floor.addingClamped(policy.maximumIssueAdvanceSeconds),
      clock.unixSeconds().map { max($0.addingClamped(secondsPerDay), floor) } ?? .max)
    guard token.claims.issuedAt <= latest else { return .denied(.tokenInvalid) }
    return .found(token)
  }

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
    guard let request = openRequest(sealed, keys: keys, transcript: transcript) else { return .malformed }
    remember(token, from: answer)
    var reply = Reply()
    var notice = Notice()
    var outcome = settle(token, proofs, request: request, nonce: nil, notice: &notice)
    reply.notice = notice
    // Trust ended while the round was under way: nobody has proved anything.
    if outcome == .tokenInvalid { return outcome }
    if outcome == .accepted {
      outcome = perform(request, on: &actuator, result: &reply.result)
    }
    return seal(reply, status: outcome, keys: keys, transcript: transcript)
  }

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
    var notice = Notice()
    let request = Request(command: command)
    let status = settle(token, proofs, request: request, nonce: nonce, notice: &notice)
    guard status == .accepted else { return status }
    var result = ByteBuffer<1024>()
    return perform(request, on: &actuator, result: &result)
  }
}

/// A token, or why there is none.
enum TokenLookup: ~Copyable {
  case found(VerifiedToken)
  case denied(Status)
}

private let secondsPerDay: UInt64 = 86_400

extension UInt64 {
  /// The sum, or the largest value where it does not fit.
  fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
