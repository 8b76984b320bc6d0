import HoldfastTransport
import Synchronization

/// The channels of callers over which this process is making proofs.
///
/// A channel that is an object is known by its identity, which is unique for as long as the proof holds the channel.
enum ChannelsInUse {
  private static let objects = Mutex<Set<ObjectIdentifier>>([])

  /// Reserves a channel for a proof, until ``end(_:)``. Returns false if another proof has it.
  static func begin(_ channel: any MessageChannel) -> Bool {
    guard let object = object(of: channel) else { return true }
    return objects.withLock { $0.insert(object).inserted }
  }

  /// Ends the reservation of the proof that holds it.
  static func end(_ channel: any MessageChannel) {
    guard let object = object(of: channel) else { return }
    objects.withLock { _ = $0.remove(object) }
  }

  /// Returns the identity of a channel; nil for a value, each copy of which would be another object.
  private static func object(of channel: any MessageChannel) -> ObjectIdentifier? {
    type(of: channel) is AnyClass ? ObjectIdentifier(channel as AnyObject) : nil
  }
}
