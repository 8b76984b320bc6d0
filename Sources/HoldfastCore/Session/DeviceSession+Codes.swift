extension DeviceSession
where
  Crypto: ~Copyable, Key: ~Copyable, Store: ~Copyable, Rules: ~Copyable, Random: ~Copyable, Time: ~Copyable
{
  /// Compares the codes that the command needs with those of the user, whose attempt is recorded already.
  @inline(never)
  mutating func compareCodes(
    _ request: borrowing Request, _ decision: borrowing Decision, round: borrowing Round
  ) throws(StoreFailure) -> CodeMatches? {
    guard let user = decision.user else { return nil }
    var matches = CodeMatches(userID: user.id)
    let needed = round.factors ?? []
    let now = try now()
    if needed.contains(.otp), let given = request.otp, let account = user.otp {
      matches.otp = try find(given.code, account, .otp, of: user, question: nil, now: now)
    }
    if needed.contains(.seal), let given = request.seal, let account = user.seal {
      if let question = try question(of: request, account, challenge: decision.attempt?.challenge) {
        matches.seal = try find(given.code, account, .seal, of: user, question: question.bytes.bytes, now: now)
      } else {
        matches.seal = CodeMatch.none
      }
    }
    return matches
  }

  @inline(never)
  private mutating func find(
    _ given: BoundedText<16>, _ account: CodeAccount, _ purpose: CodePurpose, of user: UserRecord,
    question: Span<UInt8>?, now: UInt64
  ) throws(StoreFailure) -> CodeMatch {
    // Whose secret is gone was removed since the attempt was recorded.
    guard let secret = try store.codeSecret(of: user.id, purpose) else { return .none }
    let search = CodeSearch(
      account: account, window: CodeWindow(account, of: user, now: now, limits: policy.codeLimits), question: question)
    do throws(CryptographyFailure) {
      return try search.find(given, key: secret.bytes, using: &cryptography)
    } catch { throw StoreFailure() }
  }

  /// What a seal over `request` is made from: the device's challenge, where the suite needs one, and the digest.
  @inline(never)
  private mutating func question(
    of request: borrowing Request, _ account: CodeAccount, challenge: IssuedChallenge?
  ) throws(StoreFailure) -> OCRAQuestion? {
    guard case .ocra(let suite) = account.method else { return nil }
    let digest: FixedBytes<64>
    do throws(CryptographyFailure) {
      digest = try sealQuestion(
        command: request.command, parameterCount: request.parameterCount ?? 0, parameter: { request.parameter($0) },
        using: &cryptography)
    } catch { throw StoreFailure() }
    var text = ByteBuffer<80>()
    do throws(EncodingFault) {
      if account.needsChallenge, let challenge { try text.appendHexadecimal(challenge.bytes.bytes) }
      try text.append(digest.bytes)
    } catch { throw StoreFailure() }
    return OCRAQuestion(text.bytes, for: suite)
  }
}
