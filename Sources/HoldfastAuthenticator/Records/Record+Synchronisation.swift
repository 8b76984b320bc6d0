/// Whether a record should be synchronised with its device, as far as the authenticator can tell without it.
public enum SynchronisationAdvice: Sendable, Equatable {
  /// No device synchronises the record, or it agrees with its device as far as is known.
  case notNeeded
  /// Half of the codes that the device searches ahead were shown and not accepted, or the clock was not compared for a
  /// month.
  case advised
  /// No further code is shown before the record is synchronised.
  case required
}

extension Record {
  /// The time after which clocks should be compared again, in seconds: 30 days. A quartz clock is off by about a minute
  /// then, which is as much as a device tolerates by default.
  package static let clockComparisonSeconds: UInt64 = 30 * 86_400

  /// The number of codes that were shown and that the device is not known to have seen; 0 for a record without a
  /// counter.
  public var unseenCodeCount: UInt64 {
    method.isCounted && nextCounter > acknowledgedCounter ? nextCounter - acknowledgedCounter : 0
  }

  /// Returns whether the record should be synchronised with its device.
  ///
  /// - Parameter now: The current time, in Unix seconds. A clock that went back behind the last synchronisation is a
  ///   reason to synchronise.
  /// - Returns: `notNeeded` for records that belong to no device, for host codes, and for codes over a question only.
  public func synchronisationAdvice(now: UInt64) -> SynchronisationAdvice {
    guard purpose != .host, deviceID != nil else { return .notNeeded }
    var advice = SynchronisationAdvice.notNeeded
    if method.isCounted, let window = lookAheadWindow {
      if unseenCodeCount >= window { return .required }
      if unseenCodeCount >= window - window / 2 { advice = .advised }
    }
    if method.timeStepSeconds != nil {
      guard let last = lastSynchronised, now >= last, now - last < Self.clockComparisonSeconds else { return .advised }
    }
    return advice
  }
}
