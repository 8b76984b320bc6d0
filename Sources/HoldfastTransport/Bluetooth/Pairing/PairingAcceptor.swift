/// Lets devices pair with an adapter of this host, as long as this object lives and nobody has to compare numbers.
///
/// Where no other agent answers, such as bluetoothd's, the kernel asks so at the end that is connected to, and by Low Energy
/// at both ends. Such pairing, "just works", encrypts the link and does not say who is at its other end. A request that shows a number to
/// compare is left to somebody who can see it.
public final class PairingAcceptor: Sendable {
  private let thread: ServantThread

  /// Begins to accept.
  ///
  /// - Parameters:
  ///   - adapter: the adapter's number; nil accepts on each of them.
  ///   - peer: the one that may pair; nil lets anybody.
  /// - Throws: ``BluetoothError/permissionDenied``, ``BluetoothError/noAdapter``, ``BluetoothError/unsupported``.
  public convenience init(adapter: UInt16?, peer: BluetoothAddress? = nil) throws(BluetoothError) {
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
