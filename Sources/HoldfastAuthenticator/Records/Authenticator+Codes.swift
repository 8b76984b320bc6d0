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
  package func code<Time: Clock & ~Copyable>(
    for record: Record, with protector: borrowing ProtectionSecret, challenge: String? = nil, clock: borrowing Time
  ) throws(AuthenticatorFault) -> Code {
    try codes(for: record, count: 1, with: protector, challenge: challenge, clock: clock)[0]
  }

  /// Two one-time passwords in a row, by which a device that lost count or time finds back; also where one alone is refused.
  ///
  /// The second one of a time-based record is the next step's. Throws as ``code(for:with:challenge:clock:)``;
  /// `unsuitableMethod` for OCRA.
  package func codePair<Time: Clock & ~Copyable>(
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

/// The counter and the time step of a code.
struct CodeMoment {
  /// Nil for methods without a counter.
  private(set) var counter: UInt64?
  /// Nil where the time plays no part.
  private(set) var timeStep: UInt64?
  /// How long the code is valid still, in seconds.
  private(set) var secondsRemaining: UInt64?
  private let periodSeconds: UInt64

  /// The latest moment that a code is made for: the last second that 32 bits hold, 2106-02-07.
  static let latestUnixSeconds = UInt64(UInt32.max)

  /// Neither.
  init() {
    periodSeconds = 0
  }

  /// The moment of a record's next code.
  ///
  /// Throws `clockOutOfRange`, `counterExhausted`, and `notSynchronised` unless two codes in a row are wanted.
  init<Time: Clock & ~Copyable>(next record: Record, isPair: Bool, clock: borrowing Time) throws(AuthenticatorFault) {
    periodSeconds = record.method.timeStepSeconds ?? 0
    if record.method.isCounted {
      guard record.nextCounter < maximumInteger - 1 else { throw .counterExhausted }
      if let window = record.lookAheadWindow, !isPair,
        record.nextCounter > record.acknowledgedCounter, record.nextCounter - record.acknowledgedCounter >= window
      {
        throw .notSynchronised
      }
      counter = record.nextCounter
    }
    if periodSeconds > 0 {
      let time = try Self.time(clock, offsetSeconds: record.clockOffsetSeconds)
      timeStep = TOTP.timeStep(at: time, periodSeconds: periodSeconds)
      secondsRemaining = periodSeconds - time % periodSeconds
    }
  }

  /// The device's time. Throws `clockOutOfRange` when it, or this clock's own, is before 1970 or after 2106.
  private static func time<Time: Clock & ~Copyable>(
    _ clock: borrowing Time, offsetSeconds: Int64
  ) throws(AuthenticatorFault) -> UInt64 {
    guard let now = clock.unixSeconds(), now <= latestUnixSeconds,
      let time = UInt64(exactly: Int64(now) + offsetSeconds), time <= latestUnixSeconds
    else { throw .clockOutOfRange }
    return time
  }

  /// The one so many codes later.
  func advanced(by count: UInt64) -> CodeMoment {
    var later = self
    later.counter = counter.map { $0 + count }
    later.timeStep = timeStep.map { $0 + count }
    later.secondsRemaining = secondsRemaining.map { $0 + count * periodSeconds }
    return later
  }
}

extension Record {
  /// The first counter or time step that no code was shown for.
  var freshPosition: UInt64 {
    method.isCounted ? nextCounter : lastTimeStep.map { $0 + 1 } ?? 0
  }

  /// Records that a code was made; nothing goes back.
  mutating func moveOn(past moment: CodeMoment) {
    if let counter = moment.counter { nextCounter = max(nextCounter, counter + 1) }
    if let timeStep = moment.timeStep { lastTimeStep = max(lastTimeStep ?? 0, timeStep) }
  }
}

/// A code to be shown.
package struct Code: Sendable, Equatable {
  /// 4 to 10 decimal digits.
  package let text: String
  /// How long it is valid still, by the clock that was given; nil where the time plays no part.
  package let secondsRemaining: UInt64?
}
