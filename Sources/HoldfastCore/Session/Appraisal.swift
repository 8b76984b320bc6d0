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

extension DeviceSession
where
  Crypto: ~Copyable, Key: ~Copyable, Store: ~Copyable, Rules: ~Copyable, Random: ~Copyable, Time: ~Copyable
{
  /// Computes both proofs, whether or not they were given, and compares them in constant time.
  mutating func compareProofs(
    _ answer: borrowing Answer, nonce: FixedBytes<16>, token: borrowing VerifiedToken
  ) throws(CryptographyFailure) -> (integrity: ProofResult, device: ProofResult) {
    let integrity = try measurementProof(
      key: token.claims.proofKey, nonce: nonce, measurement: token.claims.integrity, using: &cryptography)
    let device = try measurementProof(
      key: token.claims.proofKey, nonce: nonce, measurement: token.claims.device, using: &cryptography)
    return (
      ProofResult(given: answer.integrityProof, expected: integrity),
      ProofResult(given: answer.deviceProof, expected: device)
    )
  }

  /// Decrypts and decodes the request; false when it does not open or is none.
  @inline(never)
  mutating func open(
    _ request: inout Request, from sealed: Span<UInt8>, keys: borrowing SessionKeys, transcript: Transcript
  ) -> Bool {
    var plaintext = ByteBuffer<768>()
    do throws(EncodingFault) { try plaintext.append(sealed) } catch { return false }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
        using: &cryptography)
    } catch { return false }
    do throws(EncodingFault) { try request.decode(plaintext.bytes) } catch { return false }
    return true
  }

  /// Remembers a token that came whole.
  mutating func remember(_ token: borrowing VerifiedToken, from answer: borrowing Answer) {
    guard answer.encoding != .reference else { return }
    do throws(CryptographyFailure) {
      store.remember(token, as: try tokenReference(answer.token, using: &cryptography))
    } catch { return }
  }

  /// Lets the store record what the rules decide; a store that fails means no.
  mutating func settle(
    _ token: borrowing VerifiedToken, _ proofs: (integrity: ProofResult, device: ProofResult),
    request: borrowing Request, nonce: FixedBytes<16>?
  ) -> SettledRound {
    do throws(StoreFailure) {
      let milliseconds = clock.monotonicMilliseconds()
      var round = Round(
        token: token, proofs: proofs, request: request, digest: try digest(of: request), policy: policy, nonce: nonce,
        realClock: try realClock(at: milliseconds), monotonicMilliseconds: milliseconds)
      round.freshChallenge = try freshChallenge(for: request)
      var decision = Decision()
      try store.settle(round, &decision) { $2.judge($0, against: $1) }
      if decision.attempt != nil {
        round.matches = try compareCodes(request, decision, round: round)
        try store.settle(round, &decision) { $2.judge($0, against: $1) }
      }
      return SettledRound(status: decision.status, notice: decision.notice)
    } catch { return SettledRound(status: .internal, notice: Notice()) }
  }

  /// Identifies what a numbered request asks for; zero for a request without a number.
  @inline(never)
  private mutating func digest(of request: borrowing Request) throws(StoreFailure) -> FixedBytes<16> {
    guard request.number != nil else { return FixedBytes() }
    do throws(CryptographyFailure) {
      let digest = try commandDigest(
        command: request.command, parameterCount: request.parameterCount ?? 0, parameter: { request.parameter($0) },
        using: &cryptography)
      return FixedBytes(digest.bytes.extracting(0..<16))!
    } catch { throw StoreFailure() }
  }

  mutating func perform<Machine: Actuator & ~Copyable>(
    _ request: borrowing Request, on actuator: inout Machine, result: inout ByteBuffer<1024>
  ) -> Status {
    do throws(ActuatorFailure) {
      if try performUserCommand(request, result: &result) { return .accepted }
      try actuator.perform(request, result: &result)
      return .accepted
    } catch {
      result.removeAll()
      if error.isUnknownCommand { result.append(Refusal.unknownToActuator) }
      return .internal
    }
  }

  /// Leaves the sealed M3 in `outgoing` and gives its status; nothing and `internal` when that fails.
  @inline(never)
  mutating func seal(
    _ reply: borrowing Reply, status: Status, keys: borrowing SessionKeys, transcript: Transcript
  ) -> Status {
    var sealed = ByteBuffer<1088>()
    var authenticated = ByteBuffer<33>()
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

/// What the store recorded of a round.
struct SettledRound {
  let status: Status
  let notice: Notice

  /// Whether the actuator is to act: the answer to a repetition may say `accepted`, too.
  var isToBePerformed: Bool { status == .accepted && notice.highestRequestNumber == nil }
}

extension ProofResult {
  fileprivate init(given: FixedBytes<32>?, expected: FixedBytes<32>) {
    guard let given else {
      self = .absent
      return
    }
    self = constantTimeEqual(given.bytes, expected.bytes) ? .right : .wrong
  }
}

extension Round {
  @inline(never)
  fileprivate init<Rules: Policy & ~Copyable>(
    token: borrowing VerifiedToken, proofs: (integrity: ProofResult, device: ProofResult), request: borrowing Request,
    digest: FixedBytes<16>, policy: borrowing Rules, nonce: FixedBytes<16>?, realClock: UInt64?,
    monotonicMilliseconds: UInt64
  ) {
    verifyingKey = token.verifyingKey
    tokenID = token.claims.tokenID
    subject = token.claims.subject
    issuedAt = token.claims.issuedAt
    expires = token.claims.expires
    generation = token.claims.generation
    maximumUses = token.claims.maximumUses
    version = token.claims.version
    integrity = proofs.integrity
    device = proofs.device
    command = request.command
    isCommandInToken = token.claims.commands?.contains(request.command) ?? true
    let rule = policy.rule(for: request.command)
    factors = rule?.factors
    allowsCompatibility = rule?.allowsCompatibility ?? false
    limits = rule?.limits ?? policy.limits
    codes = request.codes
    codeUser = request.codeUser(for: factors ?? []) ?? request.namedUser
    isAnotherUsersCode = request.isAbout(anotherThan: token.claims.user ?? codeUser, needing: factors ?? [])
    matches = nil
    codeLimits = policy.codeLimits
    longestParameterLength = request.longestParameterLength
    compatibilityNonce = nonce
    requestNumber = nonce == nil ? request.number : nil
    requestDigest = digest
    self.realClock = realClock
    self.monotonicMilliseconds = monotonicMilliseconds
  }
}

extension Request {
  fileprivate var codes: Factors {
    var codes: Factors = []
    if otp != nil { codes.insert(.otp) }
    if seal != nil { codes.insert(.seal) }
    return codes
  }

  /// Whose code the command needs, the one-time password's first.
  fileprivate func codeUser(for factors: Factors) -> BoundedText<32>? {
    if factors.contains(.otp), let otp { return otp.user }
    if factors.contains(.seal), let seal { return seal.user }
    return nil
  }

  /// In Unicode scalars.
  fileprivate var longestParameterLength: Int {
    var longest = 0
    for index in 0..<(parameterCount ?? 0) {
      let text = parameter(index)
      let bytes = text.bytes
      var length = 0
      for position in bytes.indices where bytes[position] & 0xc0 != 0x80 { length += 1 }
      longest = max(longest, length)
    }
    return longest
  }

  fileprivate func isAbout(anotherThan user: BoundedText<32>?, needing factors: Factors) -> Bool {
    guard let user else { return false }
    if let namedUser, namedUser != user { return true }
    if factors.contains(.otp), let otp, otp.user != user { return true }
    if factors.contains(.seal), let seal, seal.user != user { return true }
    return false
  }
}

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
