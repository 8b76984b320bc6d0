import CBlueZ
import Glibc

/// A Bluetooth adapter of this machine, as far as making a connection needs to know it: one ioctl, where ``Adapter`` asks the
/// management interface for everything.
struct LocalAdapter {
  let number: UInt16
  let address: BluetoothAddress
  let isUp: Bool

  /// The adapter `hci<number>`.
  ///
  /// Source: the ioctl HCIGETDEVINFO, which needs no privilege.
  /// - Throws: ``TransportError/noAdapter``, ``TransportError/unsupported``.
  init(number: UInt16) throws(TransportError) {
    var information = hci_dev_info()
    guard unsafe hci_devinfo(CInt(number), &information) == 0 else {
      throw errno == ENODEV ? .noAdapter : TransportError(errno: errno)
    }
    self.number = number
    address = BluetoothAddress(information.bdaddr)
    isUp = information.flags & 1 << UInt32(HCI_UP) != 0
  }

  /// Every adapter there is.
  private static var all: [LocalAdapter] {
    (0..<UInt16(HCI_MAX_DEV)).compactMap { try? LocalAdapter(number: $0) }
  }

  /// The local address to bind a socket to: the named adapter's, the given one, or any.
  ///
  /// - Throws: ``TransportError/noAdapter`` where there is none that is meant, ``TransportError/adapterDown`` where there is and it is
  ///   powered off, ``TransportError/adapterBlocked`` where rfkill keeps it so.
  static func bindingAddress(
    adapter number: UInt16?, address: BluetoothAddress
  ) throws(TransportError) -> BluetoothAddress {
    let candidates = if let number { [try LocalAdapter(number: number)] } else { all }
    let meant = candidates.filter { address.isAny || $0.address == address }
    guard !meant.isEmpty else { throw .noAdapter }
    guard meant.contains(where: \.isUp) else {
      throw meant.contains { RadioBlock.ofAdapter($0.number) == nil } ? .adapterDown : .adapterBlocked
    }
    return number == nil ? address : meant[0].address
  }
}
