import Glibc
import HoldfastCore

/// Attacks on the codes of users.
extension Attack {
  static let users: [Attack] = [
    Attack(
      "no-password", "A command that needs a one-time password (--otp-command) is sent without one.",
      refused: [.factorMissing, .commandRefused], .user
    ) { (adversary, line) throws(AttackFault) -> Draft in
      try adversary.draft(on: line, request: adversary.request(adversary.options.passwordCommand))
    },
    Attack(
      "password-of-nobody", "The password is given for a user that does not exist.",
      refused: [.otpRejected, .commandRefused], .user
    ) { (adversary, line) throws(AttackFault) -> Draft in
      let code = UserCode(
        user: BoundedText("nobody-of-this-name"), code: adversary.code?.code ?? BoundedText("000000"))
      return try adversary.draft(on: line, request: adversary.request(adversary.options.passwordCommand, otp: code))
    },
    Attack(
      "part-of-a-password",
      "The right password is given without its last digit, then only its first digit, then an empty one.",
      due: text(of: [.otpRejected, .malformed, .factorMissing]) + ", for each", [.user, .destruction]
    ) { (adversary) throws(AttackFault) in
      let digits = adversary.code.map { [UInt8]($0.code.bytes) } ?? []
      var replies: [Reply] = []
      for count in [digits.count - 1, 1, 0] {
        let part = adversary.code.flatMap { UserCode(user: $0.user, digits: Array(digits.prefix(count))) }
        let reply = try adversary.passwordRound(part)
        if reply == .lockedOut, replies.isEmpty { throw .notTried("the user was locked out before") }
        if reply == .lockedOut { break }
        if count > 0 { try adversary.checkNeedsOnlyPassword(reply) }
        replies.append(reply)
      }
      return Finding(replies, refused: [.otpRejected, .malformed, .factorMissing])
    },
    ofAnotherUser(
      "password-of-another-user", "A right password is given with a trusted token for another user.", .cose, []),
    ofAnotherUser("password-of-another-user-jose", "The same with a token in JOSE.", .jose, .jose),
    Attack(
      "password-twice", "A right one-time password is used for two requests.",
      due: text(of: [.otpRejected]) + ", for the second", [.user, .destruction]
    ) { (adversary) throws(AttackFault) in
      let first = try adversary.passwordRound(adversary.code)
      guard first == .verdict(.accepted, .right) else {
        throw .notTried("the password was not accepted: \(first.text)")
      }
      return Finding(try adversary.passwordRound(adversary.code), refused: [.otpRejected])
    },
    Attack(
      "password-before-the-last", "After a later password (--later-otp) was accepted, an earlier one is given again.",
      due: text(of: [.otpRejected]), [.user, .destruction]
    ) { (adversary) throws(AttackFault) in
      guard let later = adversary.laterCode else { throw .notTried("it needs another password: --later-otp") }
      let reply = try adversary.passwordRound(later)
      guard reply == .verdict(.accepted, .right) else {
        throw .notTried("the later password was not accepted: \(reply.text)")
      }
      return Finding(try adversary.passwordRound(adversary.code), refused: [.otpRejected])
    },
    Attack(
      "parallel-guesses", "Sixteen wrong passwords are given at the same time, each on another connection.",
      due: text(of: [.lockedOut]) + ", for all but five", [.user, .destruction, .crowd]
    ) { (adversary) throws(AttackFault) in try adversary.guessInParallel() },
    Attack(
      "lockout", "Ten wrong passwords are given, each on a new connection, and then the right one.",
      due: text(of: [.lockedOut]) + ", from the sixth on", [.user, .destruction]
    ) { (adversary) throws(AttackFault) in
      if let finding = try adversary.lockUserOut() { return finding }
      return Finding(try adversary.passwordRound(adversary.code), refused: [.lockedOut])
    },
    byToken("lockout-by-token", "During a lockout, the right password comes with another token.", ofUser: false),
    byToken("lockout-by-user-token", "The same with a token for the user.", ofUser: true),
    evasion("lockout-by-case", "During a lockout, the name is written in another case.") { (name) in
      name.uppercased() == name ? name.lowercased() : name.uppercased()
    },
    evasion("lockout-by-space", "During a lockout, a space follows the name.") { "\($0) " },
    evasion("lockout-by-spare", "During a lockout, the name is that of a spare authenticator.") { "\($0)#2" },
  ]

  private static func ofAnotherUser(
    _ id: String, _ did: String, _ encoding: TokenEncoding, _ needs: Needs
  ) -> Attack {
    Attack(id, did, refused: [.commandRefused], needs.union([.user, .issuer, .destruction])) {
      (adversary, line) throws(AttackFault) -> Draft in
      let persona = try Persona.random(&adversary.random)
      let token = try adversary.makeToken(of: persona, encoding, isTrusted: true) {
        $0.plan.user = BoundedText("another-user")
      }
      let request = adversary.request(adversary.options.passwordCommand, otp: adversary.code)
      return try adversary.draft(on: line, as: persona, encoding, token, request: request)
    }
  }

  /// Makes an attack on a lockout with another token than that with which the user was locked out.
  private static func byToken(_ id: String, _ did: String, ofUser: Bool) -> Attack {
    Attack(id, did, due: text(of: [.lockedOut]), [.user, .issuer, .destruction]) { (adversary) throws(AttackFault) in
      if let finding = try adversary.lockUserOut() { return finding }
      let code = adversary.code
      let persona = try Persona.random(&adversary.random)
      let token = try adversary.makeToken(of: persona, .cose, isTrusted: true) {
        if ofUser { $0.plan.user = code?.user }
      }
      let line = try adversary.connect()
      let request = adversary.request(adversary.options.passwordCommand, otp: code)
      let draft = try adversary.draft(on: line, as: persona, .cose, token, request: request)
      return Finding(adversary.exchange(draft, on: line), refused: [.lockedOut])
    }
  }

  private static func evasion(
    _ id: String, _ did: String, _ name: @escaping @Sendable (String) -> String
  ) -> Attack {
    Attack(id, did, refused: [.otpRejected, .lockedOut, .commandRefused], [.user, .destruction]) {
      (adversary, line) throws(AttackFault) -> Draft in
      guard let code = adversary.code, let user = BoundedText<32>(name(code.user.description)) else {
        throw .notTried("the name has no such spelling")
      }
      return try adversary.draft(
        on: line,
        request: adversary.request(
          adversary.options.passwordCommand, otp: UserCode(user: user, code: code.code)))
    }
  }
}

extension Adversary {
  fileprivate mutating func passwordRound(_ code: UserCode?) throws(AttackFault) -> Reply {
    try honestRound(request(options.passwordCommand, otp: code))
  }

  /// Gives ten wrong passwords, each on a new connection; ten more as long as a lockout that an earlier attack began ends too
  /// soon.
  ///
  /// - Returns: the finding if the user is not locked out then.
  fileprivate mutating func lockUserOut() throws(AttackFault) -> Finding? {
    var answers = try wrongPasswords()
    // The clock of an emulated board is slow.
    for _ in 1...3 where answers.endsTooSoon {
      if let left = answers.secondsLeft { _ = poll(nil, 0, CInt(left + 1) * 1000) }
      answers = try wrongPasswords()
    }
    return answers.last == .lockedOut ? nil : Finding("the last one: \(answers.last.text)", isSound: false)
  }

  private mutating func wrongPasswords() throws(AttackFault) -> LockoutAnswers {
    var answers = LockoutAnswers()
    for count in 1...10 {
      let (reply, notice) = try wholeRound(
        on: try connect(), request(options.passwordCommand, otp: wrongCode(count)))
      answers.last = reply
      guard reply == .otpRejected || reply == .lockedOut else {
        try checkNeedsOnlyPassword(reply)
        break
      }
      answers.secondsLeft = reply == .lockedOut ? notice?.retryAfterSeconds : nil
      if count == 1, reply == .lockedOut { answers.beganLockedOut = true }
    }
    return answers
  }

  /// Gives up the attack if a device refuses its command for another reason than the password.
  fileprivate func checkNeedsOnlyPassword(_ reply: Reply) throws(AttackFault) {
    if reply == .verdict(.commandRefused, .right) { throw .notTried("the device refuses the command") }
    if reply == .verdict(.factorMissing, .right) { throw .notTried("the command needs more than a password") }
  }

  /// Gives sixteen wrong passwords at the same time. Each answer tells whether the device tested one.
  ///
  /// If the user is locked out from the start, nothing shows.
  fileprivate mutating func guessInParallel() throws(AttackFault) -> Finding {
    var guesses: [(line: Line, draft: Draft)] = []
    for count in 1...16 {
      do throws(AttackFault) {
        let line = try connect()
        guesses.append((line, try draft(on: line, request: request(options.passwordCommand, otp: wrongCode(count)))))
      } catch {
        // A device may have no room for so many: more than the five that may be tested say enough.
        guard guesses.count > 5 else { throw .notTried("the device has no room for so many connections") }
        break
      }
    }
    for guess in guesses { _ = guess.line.send(guess.draft.message, by: answerDeadline) }
    var (testedCount, lockedCount) = (0, 0)
    for guess in guesses {
      let reply = guess.draft.reply(guess.line.receive(by: answerDeadline))
      switch reply {
      case .otpRejected: testedCount += 1
      case .lockedOut: lockedCount += 1
      // A device may have no room for so many, or no time.
      case .closed, .verdict(.busy, _, _), .verdict(.challengeExpired, _, _): break
      default:
        try checkNeedsOnlyPassword(reply)
        return Finding(reply.text, isSound: false)
      }
    }
    if testedCount == 0 { throw .notTried("the user was locked out before, or the device had no room") }
    return Finding(
      "\(testedCount) passwords were tested, and \(lockedCount) refused during the lockout", isSound: testedCount <= 5)
  }

  /// Returns a code that differs from the right one in its last digits.
  fileprivate func wrongCode(_ count: Int) -> UserCode? {
    guard let code else { return nil }
    var digits = [UInt8](code.code.bytes)
    if let last = digits.indices.last { digits[last] = 0x30 + (digits[last] - 0x30 + UInt8(count % 9) + 1) % 10 }
    return UserCode(user: code.user, digits: digits)
  }
}

extension UserCode {
  fileprivate init?(user: BoundedText<32>, digits: [UInt8]) {
    guard let code = BoundedText<16>(digits.span) else { return nil }
    self.init(user: user, code: code)
  }
}

/// The answers to ten wrong passwords of one user.
private struct LockoutAnswers {
  /// The time that what follows them may take, in seconds.
  private static let leastSeconds: UInt64 = 15

  var last = Reply.silence
  /// The rest of the lockout after the last one, in seconds, if the device tells it.
  var secondsLeft: UInt64?
  /// Whether the user was locked out before them.
  var beganLockedOut = false

  /// Whether a lockout that was there before ended among them, or would soon.
  var endsTooSoon: Bool {
    beganLockedOut
      && (last == .lockedOut ? secondsLeft.map { $0 < Self.leastSeconds } ?? false : last == .otpRejected)
  }
}

extension Reply {
  fileprivate static let otpRejected = Reply.verdict(.otpRejected, .right)
  fileprivate static let lockedOut = Reply.verdict(.lockedOut, .right)
}
