import Glibc
import HoldfastLinux

/// What lets peers find where a device listens: a record of SDP, or an advertisement of Low Energy. It ends with this object.
package enum Publication: Sendable {
  case record(ServiceRecord)
  case advertisement(Advertisement)

  /// Makes known that a device listens at `endpoint`, whose port is filled in; nil where nobody is looking for such.
  ///
  /// - Parameters:
  ///   - name: what people know the device by.
  ///   - standing: how far the peers of a host have come that is linked by Low Energy.
  ///   - report: called from another thread with what becomes of an advertisement.
  /// - Throws: what ``ServiceRecord/init(_:name:)`` and ``Advertisement/init(adapter:psm:name:standing:report:)`` throw.
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

/// Lets devices pair with an adapter of this host, as long as this object lives and nobody has to compare numbers.
///
/// Where no other agent answers, such as bluetoothd's, the kernel asks so at the end that is connected to, and by Low Energy
/// at both ends. Such pairing, "just works", encrypts the link and does not say who is at its other end. A request that shows a number to
/// compare is left to somebody who can see it.
package final class PairingAcceptor: Sendable {
  private let thread: ServantThread

  /// Begins to accept.
  ///
  /// - Parameters:
  ///   - adapter: the adapter's number; nil accepts on each of them.
  ///   - peer: the one that may pair; nil lets anybody.
  /// - Throws: ``BluetoothError/permissionDenied``, ``BluetoothError/noAdapter``, ``BluetoothError/unsupported``.
  package convenience init(adapter: UInt16?, peer: BluetoothAddress? = nil) throws(BluetoothError) {
    let management = try ManagementSocket()
    try management.requireEvents(of: try Adapter.chosen(adapter).number)
    try self.init(adapter: adapter, peer: peer, management: management)
  }

  init(adapter: UInt16?, peer: BluetoothAddress?, management: ManagementSocket) throws(BluetoothError) {
    thread = try ServantThread { stop in
      while let (number, event) = try? management.next(by: .never, unless: stop) {
        guard case .confirmationRequest(let device, isJustWorks: true) = event,
          adapter == nil || adapter == number, peer == nil || peer == device.address
        else { continue }
        // Where it cannot be sent, the other end's time runs out: it has to begin again.
        try? management.send(ManagementCommand(.confirm, adapter: number, device.bytes))
      }
    }
  }
}

extension ManagementSocket {
  /// The kernel gives events to privileged sockets alone, and says so of commands only: asks with one that changes nothing.
  ///
  /// - Throws: ``BluetoothError/permissionDenied``.
  func requireEvents(of adapter: UInt16) throws(BluetoothError) {
    do throws(BluetoothError) {
      try execute(ManagementCommand(.readAdvertisingFeatures, adapter: adapter))
    } catch {
      // An adapter without Low Energy has no advertising features, and events all the same.
      guard error == .adapterUnable else { throw error }
    }
  }
}

/// A thread that works until its owner releases it, and has ended once that is done.
final class ServantThread: Sendable {
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

/// What names a Holdfast device to whoever looks for one.
enum HoldfastService {
  /// The service UUID afabfa41-2861-4abb-a8a7-b91b79a75ecf, in the order in which it is written.
  static let uuid: [UInt8] = [
    0xaf, 0xab, 0xfa, 0x41, 0x28, 0x61, 0x4a, 0xbb, 0xa8, 0xa7, 0xb9, 0x1b, 0x79, 0xa7, 0x5e, 0xcf,
  ]
}
