extension UserRecord {
  /// Uses up the position where a code was found; says whether the code counts. `now` is the device's time, in Unix seconds.
  mutating func useUp(_ purpose: CodePurpose, _ match: CodeMatch?, at now: UInt64) -> Bool {
    guard let match else { return false }
    let position: UInt64?
    switch purpose {
    case .otp: position = otp?.useUp(match)
    case .seal: position = seal?.useUp(match)
    case .host: return false
    }
    guard let position else { return false }
    if let step = account(purpose)?.method.timeStepSeconds { follow(step: step, position: position, at: now) }
    return true
  }

  /// The account of a purpose; the device keeps none for host codes, which it makes itself.
  public func account(_ purpose: CodePurpose) -> CodeAccount? {
    switch purpose {
    case .otp: otp
    case .seal: seal
    case .host: nil
    }
  }

  /// Corrects the offset by as little as puts the user's clock into the step whose code was accepted.
  private mutating func follow(step: UInt64, position: UInt64, at now: UInt64) {
    let expected = time(at: now)
    let first = position * step
    let last = first + step - 1
    if expected < first { clockOffsetSeconds += Int64(first - expected) }
    if expected > last { clockOffsetSeconds -= Int64(expected - last) }
    lastAccepted = now
  }
}

extension CodeAccount {
  /// Moves the high-water mark past a code that counts; gives its position, or nil.
  ///
  /// One that was found far off counts if the one before it was the last that was given.
  @inline(never)
  fileprivate mutating func useUp(_ match: CodeMatch) -> UInt64? {
    let awaited = resynchronisingPosition
    resynchronisingPosition = nil
    switch match {
    case .none: return nil
    case .near(let position):
      if needsChallenge { return position }
      guard position >= nextPosition else { return nil }
      nextPosition = position + 1
      return position
    case .far(let position):
      guard position >= nextPosition else { return nil }
      guard position == awaited else {
        resynchronisingPosition = position + 1
        return nil
      }
      nextPosition = position + 1
      return position
    }
  }
}
