/// The comparison of the codes that a command needs.
extension DeviceSession {
  /// Compares the codes that the command needs with those of the user. The attempt is recorded already.
  @inline(never)
  mutating func compareCodes(
    _ request: borrowing Request, _ decision: borrowing Decision, round: borrowing AppraisalInput
  ) throws(DeviceFault) -> CodeMatches? {
    guard let user = decision.user else { return nil }
    var matches = CodeMatches(userID: user.id)
    let needed = round.factors ?? []
    let now = try now()
    for purpose in CodePurpose.given where needed.contains(purpose.factor) {
      guard let given = request.codes[purpose], let account = user.accounts[purpose] else { continue }
      guard case .ocra = account.method else {
        matches.results[purpose] = try find(given.code, account, purpose, of: user, question: nil, now: now)
        continue
      }
      if let question = try question(of: request, account, purpose, challenge: decision.attempt?.challenge) {
        matches.results[purpose] = try find(
          given.code, account, purpose, of: user, question: question.bytes.bytes, now: now)
      } else {
        matches.results[purpose] = CodeMatch.none
      }
    }
    return matches
  }

  @inline(never)
  private mutating func find(
    _ given: BoundedText<16>, _ account: CodeAccount, _ purpose: CodePurpose, of user: UserRecord,
    question: Span<UInt8>?, now: UInt64
  ) throws(DeviceFault) -> CodeMatch {
    // A user whose secret is missing was removed after the attempt was recorded.
    guard let secret = try store.codeSecret(of: user.id, purpose) else { return .none }
    let search = CodeSearch(
      account: account, window: CodeWindow(account, of: user, now: now, limits: policy.codeLimits), question: question)
    do throws(CryptographyFailure) {
      return try search.find(given, key: secret.bytes, using: &cryptography)
    } catch { throw .cryptography }
  }

  /// Returns the question of a seal over `request`: the device's challenge, if the suite needs one, and the digest. The question
  /// of a one-time password is the challenge by itself.
  @inline(never)
  mutating func question(
    of request: borrowing Request, _ account: CodeAccount, _ purpose: CodePurpose, challenge: IssuedChallenge?
  ) throws(DeviceFault) -> OCRAQuestion? {
    guard case .ocra(let suite) = account.method else { return nil }
    #if !hasFeature(Embedded)
    if account.isBoundToConnection(for: purpose) {
      guard let challenge else { return nil }
      var digits = ByteBuffer<16>()
      do throws(EncodingFault) { try digits.appendHexadecimal(challenge.bytes.bytes) } catch { throw .encoding }
      return OCRAQuestion(challengeDigits: digits.bytes, for: suite)
    }
    #endif
    let digest: FixedBytes<64>
    do throws(CryptographyFailure) {
      digest = try sealQuestion(
        command: request.command, parameterCount: request.parameterCount ?? 0, parameter: { request.parameter($0) },
        using: &cryptography)
    } catch { throw .cryptography }
    var text = ByteBuffer<80>()
    do throws(EncodingFault) {
      if account.needsChallenge, let challenge { try text.appendHexadecimal(challenge.bytes.bytes) }
      try text.append(digest.bytes)
    } catch { throw .encoding }
    return OCRAQuestion(text.bytes, for: suite)
  }
}
