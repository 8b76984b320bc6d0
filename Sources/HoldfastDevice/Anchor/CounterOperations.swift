import HoldfastCore

/// What is done with a counter in a TPM, so that a test can let each of it fail.
///
/// The authorization value is what the counter was defined with.
struct CounterOperations: Sendable {
  /// Makes a counter that has not counted yet. Throws `taken` where there is something at its place.
  var define: @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> Void
  /// Removes what is there, for good. Throws `notDefined` where there is nothing.
  var undefine: @Sendable (CounterPlace) throws(CounterFault) -> Void
  /// Raises the counter by one; where it throws, it may have been raised or not.
  var increment: @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> Void
  /// How far it has counted; throws for one that has not counted yet.
  var read: @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> UInt64
}
