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
