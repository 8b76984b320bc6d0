import Glibc
import HoldfastLinux

/// A published record by which peers find a listening device: an SDP record or a Low Energy advertisement.
///
/// It is withdrawn when this object is released.
package enum Publication: Sendable {
  case record(ServiceRecord)
  case advertisement(Advertisement)

  /// Publishes that a device listens at `endpoint`, whose port is filled in; is nil for an endpoint that needs no publication.
  ///
  /// - Parameters:
  ///   - name: the device's name for people.
  ///   - standing: a function that returns the progress of the peers on a Low Energy link from a host.
  ///   - report: a function that is called from another thread with the changes of an advertisement.
  /// - Throws: the errors of ``ServiceRecord/init(_:name:)`` and ``Advertisement/init(adapter:psm:name:standing:report:)``.
  package init?(
    of endpoint: Endpoint, name: String, standing: @escaping @Sendable (BluetoothAddress) -> LinkStanding,
    report: @escaping @Sendable (AdvertisementNotice) -> Void
  ) throws(BluetoothError) {
    guard case .bluetooth(_, let port) = endpoint.address, !port.isOpen else { return nil }
    switch port {
    case .l2cap, .rfcomm:
      self = .record(try ServiceRecord(port, name: name))
    case .lowEnergy(let psm, _):
      self = .advertisement(
        try Advertisement(
          adapter: endpoint.adapter, psm: UInt8(truncatingIfNeeded: psm), name: name, standing: standing,
          report: report))
    }
  }
}

/// An acceptor of pairings with an adapter of this host. It works while this object exists, and only for pairings in which no
/// person compares numbers.
///
/// If no other agent answers, such as bluetoothd's, the kernel asks for confirmation at the end that accepts the connection, and
/// over Low Energy at both ends. This pairing, "just works", encrypts the link and does not authenticate the peer. A request that
/// shows a number is left to an agent whose user can see it.
package final class PairingAcceptor: Sendable {
  private let thread: OwnedThread

  /// Begins to accept pairings.
  ///
  /// - Parameters:
  ///   - adapter: the adapter's number; nil accepts on every adapter.
  ///   - peer: the only peer that may pair; nil accepts any peer.
  /// - Throws: ``BluetoothError/permissionDenied``, ``BluetoothError/noAdapter``, ``BluetoothError/unsupported``.
  package convenience init(adapter: UInt16?, peer: BluetoothAddress? = nil) throws(BluetoothError) {
    let management = try ManagementSocket()
    try management.requireEvents(of: try Adapter.chosen(adapter).number)
    try self.init(adapter: adapter, peer: peer, management: management)
  }

  package init(adapter: UInt16?, peer: BluetoothAddress?, management: ManagementSocket) throws(BluetoothError) {
    thread = try OwnedThread { stop in
      while let (number, event) = try? management.next(by: .never, unless: stop) {
        guard case .confirmationRequest(let device, isJustWorks: true) = event,
          adapter == nil || adapter == number, peer == nil || peer == device.address
        else { continue }
        // If it cannot be sent, the peer's pairing times out, and the peer has to begin again.
        try? management.send(ManagementCommand(.confirm, adapter: number, device.bytes))
      }
    }
  }
}

extension ManagementSocket {
  /// Checks that this socket receives events, by a command that changes nothing. The kernel sends events only to privileged
  /// sockets, and reports a missing privilege only for commands.
  ///
  /// - Throws: ``BluetoothError/permissionDenied``.
  func requireEvents(of adapter: UInt16) throws(BluetoothError) {
    do throws(BluetoothError) {
      try execute(ManagementCommand(.readAdvertisingFeatures, adapter: adapter))
    } catch {
      // An adapter without Low Energy has no advertising features, but it does have events.
      guard error == .adapterUnable else { throw error }
    }
  }
}

/// A thread that works until its owner releases it, and has ended once that is done.
final class OwnedThread: Sendable {
  private let stop: WakeUp
  private let thread: Thread

  /// Runs `body`, which has to return soon after the wake-up is raised.
  init(_ body: @escaping @Sendable (WakeUp) -> Void) throws(BluetoothError) {
    do throws(SystemError) {
      let stop = try WakeUp()
      self.stop = stop
      thread = try Thread { body(stop) }
    } catch { throw .other(errno: error.number) }
  }

  deinit {
    stop.raise()
    thread.join()
  }
}

/// The identity of the Holdfast service for peers that search for it.
package enum HoldfastService {
  /// The service UUID afabfa41-2861-4abb-a8a7-b91b79a75ecf, in the order in which it is written.
  package static let uuid: [UInt8] = [
    0xaf, 0xab, 0xfa, 0x41, 0x28, 0x61, 0x4a, 0xbb, 0xa8, 0xa7, 0xb9, 0x1b, 0x79, 0xa7, 0x5e, 0xcf,
  ]
}
