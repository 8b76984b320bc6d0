import HoldfastCore
import HoldfastFormats
import HoldfastStorage
import Synchronization

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

/// Why the counter that anchors a device could not be used.
package enum CounterFault: Error, Equatable, Sendable {
  /// There is no TPM: nothing at its path, nothing that could be one, or nobody who listens.
  case notThere
  case noPermission
  /// It did not answer in time, or went away in the middle.
  case silent
  /// What it answered is no answer of a TPM 2.0.
  case malformed
  /// It has no such counter: another TPM, or the counter was removed.
  case notDefined
  /// Something else stands at the counter's index: it does not take this device's authorization, or does not count.
  case notOurs
  /// Defining: the index is in use.
  case taken
  /// Defining: it has no room left.
  case full
  /// Defining or removing: its owner has set a password.
  case ownerOnly
  /// It refused for another reason: a response code of Part 2 §6.6.
  case refused(code: UInt32)
}

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

/// Which counter anchors a device: a TPM, and the index of a counter in it.
package struct CounterPlace: Sendable, Equatable {
  /// A device of the kernel's resource manager or a Unix socket, as an absolute path of at most 107 bytes.
  package let tpm: String
  /// From 0x01800000 to 0x01BFFFFF, the owner's range: 22 bits of the device id.
  ///
  /// Source: Registry of Reserved TPM 2.0 Handles and Localities, §2.2.
  package let index: UInt32

  /// The place of a device's counter; nil unless `tpm` is such a path.
  package init?(tpm: String, deviceID: DeviceID) {
    let path = tpm.utf8
    guard path.first == UInt8(ascii: "/"), path.count <= 107, !path.contains(0) else { return nil }
    self.tpm = tpm
    let bits = UInt32(deviceID[0]) << 16 | UInt32(deviceID[1]) << 8 | UInt32(deviceID[2])
    index = 0x0180_0000 | bits & 0x3f_ffff
  }
}

extension CounterPlace {
  /// Reads `{"tpm": path, "index": number}`; nil unless it is exactly that, and the counter of `deviceID`.
  init?(_ value: JSONValue, deviceID: DeviceID) {
    guard value.hasOnly(["tpm", "index"]), let tpm = value["tpm"]?.text, let index = value["index"]?.number else {
      return nil
    }
    self.init(tpm: tpm, deviceID: deviceID)
    guard index == self.index else { return nil }
  }

  var json: JSONValue { .object([("tpm", .string(tpm)), ("index", .integer(UInt64(index)))]) }
}

/// Ties a ledger to a counter outside of its folder, so that an older copy of the ledger is told from the newest one.
///
/// Every write raises the ledger's epoch and, once it is durable and before anything is acted upon, the counter. So the epoch
/// is the count, or one ahead of it where a write was cut off between the two; any other is not the newest ledger. Processes
/// take turns: no one sees another's write half done and counts for it.
///
/// A write that was cut off is one ahead of the counter, and so would be the next write on a copy from before it: the count
/// alone would then fit both. Therefore who does not know the epoch as one that he counted himself writes nothing at first but
/// the next epoch. What was cut off before is then either the ledger he goes on with or two behind the next one that matters.
final class LedgerAnchor: Sendable {
  private let deviceID: DeviceID
  private let counter: RollbackCounter
  private let turns: FolderTurns
  /// The last epoch that was counted here; nil before, and after a failure.
  private let counted = Mutex<UInt64?>(nil)

  init(of deviceID: DeviceID, _ counter: RollbackCounter, turns: FolderTurns) {
    (self.deviceID, self.counter, self.turns) = (deviceID, counter, turns)
  }

  /// Runs `body` while no other holder of a ledger in this folder is in a turn. Throws `busy` after ten seconds.
  func takeTurn<Result>(_ body: () throws(LedgerError) -> Result) throws(LedgerError) -> Result {
    try turns.take(orThrow: .database(.busy), body)
  }

  /// Throws unless `state` is that of the newest ledger; counts for a write that was cut off. Within a turn.
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

  /// Whether `epoch` was counted here.
  func hasCounted(_ epoch: UInt64?) -> Bool {
    counted.withLock { $0 != nil && $0 == epoch }
  }

  /// Counts for a write that is durable now. Within its turn.
  func count(_ epoch: UInt64?) throws(LedgerError) {
    counted.withLock { $0 = nil }
    do throws(CounterFault) { try counter.increment() } catch { throw .counter(error) }
    counted.withLock { $0 = epoch }
  }
}
