import HoldfastCore

/// The counter of one device, which can only be raised, with what authorizes its use.
final class RollbackCounter: Sendable {
  let place: CounterPlace
  private let authorization: Secret<32>
  private let operations: CounterOperations

  init(_ place: CounterPlace, authorization: consuming Secret<32>, operations: CounterOperations) {
    (self.place, self.operations) = (place, operations)
    self.authorization = authorization
  }

  /// Makes the counter and returns how far it has counted, which is above every counter that the TPM ever had.
  ///
  /// Throws `taken` where its index is in use; what it made is removed again where it throws later.
  func define() throws(CounterFault) -> UInt64 {
    try operations.define(place, authorization)
    do throws(CounterFault) {
      // A counter counts from its first increment on.
      try increment()
      return try read()
    } catch {
      try? operations.undefine(place)
      throw error
    }
  }

  func increment() throws(CounterFault) {
    try operations.increment(place, authorization)
  }

  func read() throws(CounterFault) -> UInt64 {
    try operations.read(place, authorization)
  }
}

extension DeviceSecrets {
  /// The counter at `place`, which only this device's key can raise or read.
  func counter(
    at place: CounterPlace, _ operations: CounterOperations
  ) throws(DeviceFolderFault) -> RollbackCounter {
    do throws(CryptographyFailure) {
      return RollbackCounter(place, authorization: try counterAuthorization(), operations: operations)
    } catch { throw .failed }
  }
}
