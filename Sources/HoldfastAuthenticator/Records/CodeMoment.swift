import HoldfastCore

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
