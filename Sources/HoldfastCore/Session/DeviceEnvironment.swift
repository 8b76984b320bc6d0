/// The parts that a device gives to its sessions. The environment names their types, so that the compiler generates code for
/// exactly these.
///
/// An enum without cases is enough.
public protocol DeviceEnvironment {
  /// The cryptographic primitives.
  associatedtype Crypto: Cryptography, ~Copyable
  /// The device's private key.
  associatedtype Key: AgreementKey, ~Copyable
  /// The store of everything that the device must not forget.
  associatedtype Store: DeviceStore, ~Copyable
  /// The policy of the device's owner.
  associatedtype Rules: Policy, ~Copyable
  /// The source of random bytes.
  associatedtype Random: RandomSource, ~Copyable
  /// The clocks.
  associatedtype Time: Clock, ~Copyable
}

/// The part of a device that failed. The device must not act upon anything then, and answers `internal`.
public enum DeviceFault: Error, Equatable {
  /// The store could not be read or written.
  case store
  /// The source of random bytes failed.
  case random
  /// A cryptographic primitive failed.
  case cryptography
  /// A message or a value that the device makes did not fit.
  case encoding
}

/// A source of time, supplied from outside.
public protocol Clock: ~Copyable {
  /// Returns the seconds since 1970-01-01 00:00 UTC; nil if there is no real clock.
  func unixSeconds() -> UInt64?

  /// Returns the milliseconds since some moment before the program started. The value never goes back.
  func monotonicMilliseconds() -> UInt64
}
