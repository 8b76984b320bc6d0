/// One-time passwords from the time: the code of a step is ``HOTP``'s, with the step as its counter.
///
/// Source: RFC 6238 §4.
public enum TOTP {
  /// The time step that `unixSeconds` lies in, counted from 1970 on; `periodSeconds` is at least 1.
  ///
  /// Source: RFC 6238 §4.2.
  public static func timeStep(at unixSeconds: UInt64, periodSeconds: UInt64) -> UInt64 {
    precondition(periodSeconds >= 1)
    return unixSeconds / periodSeconds
  }
}
