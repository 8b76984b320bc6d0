import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import Synchronization

/// The counter of one device, which can only be raised, and the secret that authorizes its use.
package final class RollbackCounter: Sendable {
  package let place: CounterPlace
  private let authorization: Secret<32>
  private let operations: CounterOperations

  package init(_ place: CounterPlace, authorization: consuming Secret<32>, operations: CounterOperations) {
    (self.place, self.operations) = (place, operations)
    self.authorization = authorization
  }

  /// Defines the counter and returns its value, which is higher than that of every counter that the TPM ever had.
  ///
  /// - Throws: `taken` if the index is in use. If a later step fails, the counter is removed again.
  package func define() throws(CounterFault) -> UInt64 {
    try operations.define(place, authorization)
    do throws(CounterFault) {
      // A counter has no value before its first increment.
      try increment()
      return try read()
    } catch {
      try? operations.undefine(place)
      throw error
    }
  }

  package func increment() throws(CounterFault) {
    try operations.increment(place, authorization)
  }

  package func read() throws(CounterFault) -> UInt64 {
    try operations.read(place, authorization)
  }
}

extension DeviceSecrets {
  /// Returns the counter at `place`, which only this device's key can raise or read.
  package func counter(
    at place: CounterPlace, _ operations: CounterOperations
  ) throws(DeviceFolderFault) -> RollbackCounter {
    do throws(CryptographyFailure) {
      return RollbackCounter(place, authorization: try counterAuthorization(), operations: operations)
    } catch { throw .failed }
  }
}

/// The reason that the counter that anchors a device, or the key that a TPM holds for it, could not be used.
public enum CounterFault: Error, Equatable, Sendable {
  /// There is no TPM: nothing exists at its path, or something else, or no process listens there.
  case notThere
  /// This user has no permission to use the TPM.
  case noPermission
  /// The TPM did not answer in time, or closed the connection early.
  case silent
  /// The answer is not one of a TPM 2.0.
  case malformed
  /// The TPM has no such counter: it is another TPM, or the counter was removed.
  case notDefined
  /// The index holds something else: it does not accept this device's authorization, or is not a counter.
  case notOurs
  /// The index to be defined is in use.
  case taken
  /// The TPM has no room for another counter.
  case full
  /// Defining or removing a counter needs the password that the TPM's owner has set.
  case ownerOnly
  /// The TPM refused for another reason. `code` is a response code of TPM 2.0 Library, Part 2 §6.6.
  case refused(code: UInt32)
}

/// The operations on a counter in a TPM, and on keys. Tests replace them to make each one fail.
///
/// The authorization value is the one with which the counter was defined.
package struct CounterOperations: Sendable {
  /// Defines a counter, which has no value yet. Throws `taken` if the index is in use.
  package var define: @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> Void
  /// Removes the counter permanently. Throws `notDefined` if there is none.
  package var undefine: @Sendable (CounterPlace) throws(CounterFault) -> Void
  /// Raises the counter by one. If it throws, the counter may have been raised or not.
  package var increment: @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> Void
  /// Returns the counter's value. Throws for a counter that was never raised.
  package var read: @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> UInt64
  /// The operations on keys.
  package var keys = TPMKeyOperations.tpm

  package init(
    define: @escaping @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> Void,
    undefine: @escaping @Sendable (CounterPlace) throws(CounterFault) -> Void,
    increment: @escaping @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> Void,
    read: @escaping @Sendable (CounterPlace, borrowing Secret<32>) throws(CounterFault) -> UInt64
  ) {
    (self.define, self.undefine, self.increment, self.read) = (define, undefine, increment, read)
  }
}

/// The place of the counter that anchors a device: a TPM, and an index in it.
package struct CounterPlace: Sendable, Equatable {
  /// The absolute path of at most 107 bytes of a TPM device file of the kernel's resource manager, or of a Unix socket.
  package let tpm: String
  /// The NV index, from 0x01800000 to 0x01BFFFFF, the owner's range. Its lower 22 bits come from the device id.
  ///
  /// Source: Registry of Reserved TPM 2.0 Handles and Localities, §2.2.
  package let index: UInt32

  /// Makes the place of a device's counter; nil unless `tpm` is such a path.
  package init?(tpm: String, deviceID: DeviceID) {
    let path = tpm.utf8
    guard path.first == UInt8(ascii: "/"), path.count <= 107, !path.contains(0) else { return nil }
    self.tpm = tpm
    let bits = UInt32(deviceID[0]) << 16 | UInt32(deviceID[1]) << 8 | UInt32(deviceID[2])
    index = 0x0180_0000 | bits & 0x3f_ffff
  }
}

extension CounterPlace {
  /// Reads `{"tpm": path, "index": number}`; nil unless it has exactly these members and is the place for `deviceID`.
  init?(_ value: JSONValue, deviceID: DeviceID) {
    guard value.hasOnly(["tpm", "index"]), let tpm = value["tpm"]?.text, let index = value["index"]?.number else {
      return nil
    }
    self.init(tpm: tpm, deviceID: deviceID)
    guard index == self.index else { return nil }
  }

  var json: JSONValue { .object([("tpm", .string(tpm)), ("index", .integer(UInt64(index)))]) }
}

/// A link between a ledger and a counter outside its folder, which distinguishes the newest ledger from an older copy.
///
/// Every write raises the ledger's epoch. Once the write is durable, and before anything is acted upon, it raises the counter
/// too. So the epoch equals the count, or is one ahead of it if a write was cut off between the two. With any other epoch,
/// the ledger is not the newest one. Processes take turns: none sees another's unfinished write and raises the counter for
/// it.
///
/// A ledger whose last write was cut off is one ahead of the counter. The next write to an older copy, taken before that
/// write, would be one ahead as well, so both would fit the count. Therefore a process that did not count the current epoch
/// itself first writes nothing but the next epoch. The ledger with the cut-off write is then either the one that the process
/// continues, or two behind the next write that matters.
package final class LedgerAnchor: Sendable {
  private let deviceID: DeviceID
  private let counter: RollbackCounter
  private let turns: FolderTurns
  /// The last epoch that this object counted; nil before the first one, and after a failure.
  private let counted = Mutex<UInt64?>(nil)

  init(of deviceID: DeviceID, _ counter: RollbackCounter, turns: FolderTurns) {
    (self.deviceID, self.counter, self.turns) = (deviceID, counter, turns)
  }

  /// Runs `body` while no other holder of a ledger in this folder is in a turn.
  ///
  /// - Throws: `busy` after ten seconds.
  func takeTurn<Result>(_ body: () throws(LedgerError) -> Result) throws(LedgerError) -> Result {
    try turns.take(orThrow: .database(.busy), body)
  }

  /// Checks that `state` is that of the newest ledger, and raises the counter for a write that was cut off. Call it within a
  /// turn.
  ///
  /// - Throws: `otherDevice`, `rolledBack`, `counter`.
  func catchUp(with state: LedgerState) throws(LedgerError) {
    guard state.deviceID == deviceID else { throw .otherDevice }
    guard let epoch = state.epoch, epoch > 0 else { throw .rolledBack }
    do throws(CounterFault) {
      let count = try counter.read()
      if epoch == count { return }
      if epoch - 1 == count { return try counter.increment() }
    } catch { throw .counter(error) }
    throw .rolledBack
  }

  /// Returns whether this object counted `epoch`.
  func hasCounted(_ epoch: UInt64?) -> Bool {
    counted.withLock { $0 != nil && $0 == epoch }
  }

  /// Raises the counter for a write that is durable. Call it within the turn of that write.
  func count(_ epoch: UInt64?) throws(LedgerError) {
    counted.withLock { $0 = nil }
    do throws(CounterFault) { try counter.increment() } catch { throw .counter(error) }
    counted.withLock { $0 = epoch }
  }
}
