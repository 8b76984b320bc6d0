import HoldfastCore
import HoldfastOpenSSL

extension Authenticator {
  /// The next one-time password of a record, recorded before it is returned.
  ///
  /// - Parameters:
  ///   - record: As ``record(user:index:purpose:)`` gave it, of purpose `otp`.
  ///   - protector: What its protection asks for. A wrong PIN gives a wrong code.
  ///   - challenge: The question, for an OCRA method and no other.
  /// - Throws: `notSynchronised` beyond what the device looks at, `counterExhausted`, `clockOutOfRange`, `badQuestion`,
  ///   `protectionMismatch`, `notConfirmed`, `interrupted`, `unsuitableMethod`; `busy`, `diskFull`, `failed`.
  public func code<Time: Clock & ~Copyable>(
    for record: Record, with protector: borrowing ProtectionSecret, challenge: String? = nil, clock: borrowing Time
  ) throws(AuthenticatorFault) -> Code {
    try codes(for: record, count: 1, with: protector, challenge: challenge, clock: clock)[0]
  }

  /// Two one-time passwords in a row, by which a device that lost count or time finds back; also where one alone is refused.
  ///
  /// The second one of a time-based record is the next step's. Throws as ``code(for:with:challenge:clock:)``;
  /// `unsuitableMethod` for OCRA.
  public func codePair<Time: Clock & ~Copyable>(
    for record: Record, with protector: borrowing ProtectionSecret, clock: borrowing Time
  ) throws(AuthenticatorFault) -> [Code] {
    if case .ocra = record.method { throw .unsuitableMethod }
    return try codes(for: record, count: 2, with: protector, challenge: nil, clock: clock)
  }

  private func codes<Time: Clock & ~Copyable>(
    for record: Record, count: UInt64, with protector: borrowing ProtectionSecret, challenge: String?,
    clock: borrowing Time
  ) throws(AuthenticatorFault) -> [Code] {
    guard record.purpose == .otp else { throw .unsuitableMethod }
    let question = try OCRAQuestion(challenge, of: record.method)
    return try use(record, count: count, with: protector, clock: clock) { (key, moment) throws(AuthenticatorFault) in
      try self.code(record.method, key: key, moment: moment, question: question)
    }
  }

  /// Moves a record on by `count` codes, and returns them once that is on the disk.
  func use<Time: Clock & ~Copyable>(
    _ record: Record, count: UInt64, with protector: borrowing ProtectionSecret, clock: borrowing Time,
    _ body: (Span<UInt8>, CodeMoment) throws(AuthenticatorFault) -> BoundedText<16>
  ) throws(AuthenticatorFault) -> [Code] {
    let secret = try stored(record.user, record.index).usableSecret()
    // Slow, and therefore before the database is locked.
    let key = try secret.unblinded(with: protector)
    return try tables.transaction { () throws(AuthenticatorFault) in
      var stored = try current(record, with: secret)
      let first = try CodeMoment(next: stored.record, isPair: count > 1, clock: clock)
      var codes: [Code] = []
      for ahead in 0..<count {
        let moment = first.advanced(by: ahead)
        let text = try body(key.bytes, moment)
        codes.append(Code(text: text.description, secondsRemaining: moment.secondsRemaining))
      }
      stored.record.moveOn(past: first.advanced(by: count - 1))
      try tables.save(stored)
      return codes
    }
  }

  private func code(
    _ method: CodeMethod, key: Span<UInt8>, moment: CodeMoment, question: OCRAQuestion?
  ) throws(AuthenticatorFault) -> BoundedText<16> {
    do throws(CryptographyFailure) {
      switch method {
      case .hotp(let hash, let length):
        return try HOTP.code(counter: moment.counter ?? 0, key: key, hash: hash, length: length, using: &cryptography)
      case .totp(let hash, let length, _):
        return try HOTP.code(counter: moment.timeStep ?? 0, key: key, hash: hash, length: length, using: &cryptography)
      case .ocra(let suite):
        guard let question else { throw CryptographyFailure() }
        return try answer(suite, key: key, question: question, moment: moment)
      }
    } catch { throw .failed }
  }

  /// An OCRA code.
  func answer(
    _ suite: OCRASuite, key: Span<UInt8>, question: OCRAQuestion, moment: CodeMoment
  ) throws(CryptographyFailure) -> BoundedText<16> {
    do throws(OCRAFault) {
      return try OCRA.code(
        suite: suite, key: key,
        input: OCRAInput(counter: moment.counter, question: question, timeStep: moment.timeStep), using: &cryptography)
    } catch { throw CryptographyFailure() }
  }
}

extension OCRAQuestion {
  /// The question that a method needs: nil for one that needs none. Throws `badQuestion`.
  fileprivate init?(_ challenge: String?, of method: CodeMethod) throws(AuthenticatorFault) {
    guard case .ocra(let suite) = method else {
      guard challenge == nil else { throw .badQuestion }
      return nil
    }
    guard let challenge, challenge.utf8.count <= suite.questionLength else { throw .badQuestion }
    let text = Array(challenge.utf8)
    guard let question = OCRAQuestion(text.span, for: suite) else { throw .badQuestion }
    self = question
  }
}
