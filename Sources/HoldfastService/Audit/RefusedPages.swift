import HoldfastCore
import Synchronization

/// The numbers of pages that could not be opened and that are not in the database yet. Any number of threads may use them.
///
/// Anyone can send such pages. Each instance writes their number at most once a second for a device, so that a flood of them neither costs a
/// transaction for each request nor holds up the device's own pages. If an instance ends, it loses the numbers of its last second.
package final class RefusedPages: Sendable {
  private struct Count {
    var waiting: UInt64
    /// The time of the last write, in Unix seconds.
    var written: UInt64
  }

  /// The number of devices whose pages can wait.
  package static let limit = 4096
  private let counts = Mutex<[DeviceID: Count]>([:])

  /// Creates counts of no device.
  package init() {}

  /// Counts pages of a device.
  ///
  /// - Returns: The number that is to be written now.
  package func add(_ count: Int, of device: DeviceID, at now: UInt64) -> UInt64 {
    counts.withLock { counts in
      if counts[device] == nil, counts.count >= Self.limit {
        counts = counts.filter { $0.value.waiting > 0 || $0.value.written >= now }
        guard counts.count < Self.limit else { return UInt64(count) }
      }
      var entry = counts[device] ?? Count(waiting: 0, written: 0)
      entry.waiting += UInt64(count)
      let due = entry.written < now ? entry.waiting : 0
      if due > 0 { entry = Count(waiting: 0, written: now) }
      counts[device] = entry
      return due
    }
  }

  /// Returns the number that waits, for a transaction that is due anyway.
  package func take(of device: DeviceID, at now: UInt64) -> UInt64 {
    counts.withLock { counts in
      guard let waiting = counts[device]?.waiting else { return 0 }
      counts[device] = Count(waiting: 0, written: now)
      return waiting
    }
  }
}
