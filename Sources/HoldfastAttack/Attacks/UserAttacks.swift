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
      "password-of-another-user", "A right password is given with a trusted token for another user.",
      refused: [.commandRefused], [.user, .issuer, .destruction]
    ) { (adversary, line) throws(AttackFault) -> Draft in
      var plan = try adversary.plan()
      plan.user = BoundedText("another-user")
      let persona = try Persona.random(&adversary.random)
      let token = try adversary.issue(plan, of: persona)
      let request = adversary.request(adversary.options.passwordCommand, otp: adversary.code)
      return try adversary.draft(on: line, as: persona, .cose, token, request: request)
    },
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
      "lockout", "Ten wrong passwords are given, each on a new connection, and then the right one.",
      due: text(of: [.lockedOut]) + ", from the sixth on", [.user, .destruction]
    ) { (adversary) throws(AttackFault) in
      var reply = Reply.silence
      for count in 1...10 {
        reply = try adversary.passwordRound(adversary.wrongCode(count))
        guard reply.refuses(with: [.otpRejected, .lockedOut]), reply != .closed else {
          if case .verdict(.commandRefused, _, _) = reply { throw .notTried("the device refuses the command") }
          return Finding(reply.text, isSound: false)
        }
      }
      guard reply.refuses(with: [.lockedOut]) else { return Finding("the tenth: \(reply.text)", isSound: false) }
      return Finding(try adversary.passwordRound(adversary.code), refused: [.lockedOut])
    },
    evasion("lockout-by-case", "During a lockout, the name is written in another case.") { (name) in
      name.uppercased() == name ? name.lowercased() : name.uppercased()
    },
    evasion("lockout-by-space", "During a lockout, a space follows the name.") { "\($0) " },
    evasion("lockout-by-spare", "During a lockout, the name is that of a spare authenticator.") { "\($0)#2" },
  ]

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

  /// Returns a code that differs from the right one in its last digits.
  fileprivate func wrongCode(_ count: Int) -> UserCode? {
    guard let code else { return nil }
    var digits = [UInt8](code.code.bytes)
    if let last = digits.indices.last { digits[last] = 0x30 + (digits[last] - 0x30 + UInt8(count % 9) + 1) % 10 }
    guard let wrong = BoundedText<16>(digits.span) else { return nil }
    return UserCode(user: code.user, code: wrong)
  }
}
