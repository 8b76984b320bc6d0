extension ProverSession where Crypto: ~Copyable, Random: ~Copyable {
  /// Reads M3 and says whether it is over.
  mutating func conclude(
    _ message: Span<UInt8>, _ round: borrowing PendingRound
  ) throws(ProverFault) -> ProverStep {
    let verdict: VerdictMessage
    do throws(EncodingFault) { verdict = try VerdictMessage(message) } catch { throw .malformed }
    guard verdict.isSealed else {
      guard !verdict.status.needsAuthentication else { throw .impostor }
      return afterUnsealed(verdict.status, round)
    }
    try openReply(verdict, round)
    var notice = reply.notice
    if verdict.status != .accepted { notice.refusal = Refusal(word: reply.result.bytes) }
    return afterSealed(ProverVerdict(status: verdict.status, isAuthenticated: true, notice: notice), round)
  }

  private mutating func afterUnsealed(_ status: Status, _ round: borrowing PendingRound) -> ProverStep {
    if status == .tokenUnknown, round.sentReference {
      sendsReference = false
      return .awaitChallenge
    }
    return .done(standing ?? ProverVerdict(status: status, isAuthenticated: false))
  }

  /// A command that needs no integrity may still go through without that proof; otherwise the first verdict stands.
  private mutating func afterSealed(_ verdict: ProverVerdict, _ round: borrowing PendingRound) -> ProverStep {
    sendsReference = true
    if verdict.status == .integrityMismatch, round.sentIntegrity, !required.contains(.integrity) {
      sendsIntegrity = false
      standing = verdict
      return .awaitChallenge
    }
    if let standing, verdict.status == .factorMissing {
      return .done(standing)
    }
    return .done(verdict)
  }

  private mutating func openReply(_ verdict: borrowing VerdictMessage, _ round: borrowing PendingRound)
    throws(ProverFault)
  {
    var plaintext = ByteBuffer<1088>()
    var authenticated = ByteBuffer<33>()
    do throws(EncodingFault) {
      try plaintext.append(verdict.sealed)
      try authenticated.append(round.transcript.hash.bytes)
      try authenticated.append(verdict.status.rawValue)
    } catch { throw .malformed }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: round.keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.bytes,
        using: &cryptography)
    } catch { throw .impostor }
    do throws(EncodingFault) { reply = try Reply(plaintext.bytes) } catch { throw .malformed }
  }
}
