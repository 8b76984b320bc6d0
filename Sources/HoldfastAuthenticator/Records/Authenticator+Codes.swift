import HoldfastCore
import HoldfastOpenSSL

extension Authenticator {
  /// Makes the next one-time password of a record. It is recorded as used before it is returned.
  ///
  /// - Parameters:
  ///   - record: A record of purpose `otp`, as ``record(user:index:purpose:)`` returns it.
  ///   - protector: The input that the record's protection requires. A wrong PIN yields a wrong code.
  ///   - challenge: The question, only for an OCRA method. For a record of a known device it is that device's challenge, 16
  ///     hexadecimal digits, which is good on the connection on which the device issued it.
  ///   - clock: The clock by which a time-based code is made.
  /// - Throws: `notSynchronised` beyond the device's look-ahead window, `counterExhausted`, `clockOutOfRange`,
  ///   `badQuestion`, `protectionMismatch`, `notConfirmed`, `interrupted`, `unsuitableMethod` for a record of another purpose,
  ///   `unknownRecord` if it was removed meanwhile; `busy`, also if it was replaced; `diskFull`, `failed`.
  public func code<Time: Clock & ~Copyable>(
    for record: Record, with protector: borrowing ProtectionSecret, challenge: String? = nil, clock: borrowing Time
  ) throws(AuthenticatorFault) -> Code {
    try codes(for: record, count: 1, with: protector, challenge: challenge, clock: clock)[0]
  }

  /// Makes two consecutive one-time passwords, with which a device that lost the counter or the time resynchronises.
  /// They are also made where a single code would be refused as `notSynchronised`.
  ///
  /// The second password of a time-based record belongs to the next time step.
  ///
  /// - Throws: The errors of ``code(for:with:challenge:clock:)``, and `unsuitableMethod` for OCRA.
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
    let question = try OCRAQuestion(challenge, of: record)
    return try use(record, count: count, with: protector, clock: clock) { (key, moment) throws(AuthenticatorFault) in
      try self.code(record.method, key: key, moment: moment, question: question)
    }
  }

  /// Advances a record by `count` codes. It returns the codes after that is on the disk.
  func use<Time: Clock & ~Copyable>(
    _ record: Record, count: UInt64, with protector: borrowing ProtectionSecret, clock: borrowing Time,
    _ body: (Span<UInt8>, CodeMoment) throws(AuthenticatorFault) -> BoundedText<16>
  ) throws(AuthenticatorFault) -> [Code] {
    let secret = try stored(record).usableSecret()
    // Unblinding is slow, so it is done before the transaction locks the database.
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

  /// Computes an OCRA code.
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
  /// Creates the question of a record's code; nil for a method without one.
  ///
  /// - Throws: `badQuestion` if the question is malformed, is missing, or is given to a method without one.
  fileprivate init?(_ challenge: String?, of record: Record) throws(AuthenticatorFault) {
    guard case .ocra(let suite) = record.method else {
      guard challenge == nil else { throw .badQuestion }
      return nil
    }
    if record.deviceID != nil {
      let digits = challenge.flatMap { DeviceChallenge($0) }.map { Array($0.digits.utf8) } ?? []
      guard let question = OCRAQuestion(challengeDigits: digits.span, for: suite) else { throw .badQuestion }
      self = question
      return
    }
    guard let challenge, challenge.utf8.count <= suite.questionLength else { throw .badQuestion }
    let text = Array(challenge.utf8)
    guard let question = OCRAQuestion(text.span, for: suite) else { throw .badQuestion }
    self = question
  }
}

/// The counter and the time step of a code.
struct CodeMoment {
  /// The counter; nil for methods without one.
  private(set) var counter: UInt64?
  /// The time step; nil for methods that do not use the time.
  private(set) var timeStep: UInt64?
  /// The remaining validity of the code, in seconds; nil for methods that do not use the time.
  private(set) var secondsRemaining: UInt64?
  private let periodSeconds: UInt64

  /// The latest time for which a code is made, in Unix seconds: the last second that fits in 32 bits, on 2106-02-07.
  static let latestUnixSeconds = UInt64(UInt32.max)

  /// Creates a moment with neither counter nor time step.
  init() {
    periodSeconds = 0
  }

  /// Creates the moment of a record's next code.
  ///
  /// - Throws: `clockOutOfRange`, `counterExhausted`, and `notSynchronised` unless a pair of codes is wanted.
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

  /// Returns the device's time, in Unix seconds.
  ///
  /// - Throws: `clockOutOfRange` if that time or the local clock is before 1970 or after 2106-02-07.
  private static func time<Time: Clock & ~Copyable>(
    _ clock: borrowing Time, offsetSeconds: Int64
  ) throws(AuthenticatorFault) -> UInt64 {
    guard let now = clock.unixSeconds(), now <= latestUnixSeconds,
      let time = UInt64(exactly: Int64(now) + offsetSeconds), time <= latestUnixSeconds
    else { throw .clockOutOfRange }
    return time
  }

  /// Returns the moment that is `count` codes later.
  func advanced(by count: UInt64) -> CodeMoment {
    var later = self
    later.counter = counter.map { $0 + count }
    later.timeStep = timeStep.map { $0 + count }
    later.secondsRemaining = secondsRemaining.map { $0 + count * periodSeconds }
    return later
  }
}

extension Record {
  /// The first counter or time step for which no code was shown.
  var freshPosition: UInt64 {
    method.isCounted ? nextCounter : lastTimeStep.map { $0 + 1 } ?? 0
  }

  /// Records that a code was made. The counter and the time step never go back.
  mutating func moveOn(past moment: CodeMoment) {
    if let counter = moment.counter { nextCounter = max(nextCounter, counter + 1) }
    if let timeStep = moment.timeStep { lastTimeStep = max(lastTimeStep ?? 0, timeStep) }
  }
}

/// A code for display.
public struct Code: Sendable, Equatable {
  /// The code, 4 to 10 decimal digits.
  public let text: String
  /// The remaining validity by the given clock, in seconds; nil for methods that do not use the time.
  public let secondsRemaining: UInt64?

  package init(text: String, secondsRemaining: UInt64?) {
    (self.text, self.secondsRemaining) = (text, secondsRemaining)
  }
}
