import CBlueZ
import Glibc

/// A Bluetooth address and port as bind(2) and connect(2) take them: a `sockaddr_l2` or `sockaddr_rc`.
struct BluetoothSocketName {
  private var storage = sockaddr_storage()
  private let byteCount: socklen_t

  /// The number is 0 where the port leaves it open.
  init(_ address: BluetoothAddress, _ port: BluetoothPort) {
    switch port {
    case .l2cap(let psm): self.init(l2cap: address, psm: psm ?? 0, kind: BDADDR_BREDR)
    case .lowEnergy(let psm, .public): self.init(l2cap: address, psm: psm, kind: BDADDR_LE_PUBLIC)
    case .lowEnergy(let psm, .random): self.init(l2cap: address, psm: psm, kind: BDADDR_LE_RANDOM)
    case .rfcomm(let channel):
      var name = sockaddr_rc()
      name.rc_family = sa_family_t(AF_BLUETOOTH)
      name.rc_bdaddr = bdaddr_t(address)
      name.rc_channel = channel ?? 0
      self.init(copying: name)
    }
  }

  private init(l2cap address: BluetoothAddress, psm: UInt16, kind: CInt) {
    var name = sockaddr_l2()
    name.l2_family = sa_family_t(AF_BLUETOOTH)
    name.l2_bdaddr = bdaddr_t(address)
    name.l2_psm = psm.littleEndian
    name.l2_bdaddr_type = UInt8(kind)
    self.init(copying: name)
  }

  private init<Name: BitwiseCopyable>(copying name: Name) {
    byteCount = socklen_t(MemoryLayout<Name>.size)
    unsafe withUnsafeMutableBytes(of: &storage) { unsafe $0.storeBytes(of: name, as: Name.self) }
  }

  /// Calls bind(2) or connect(2). Returns 0, or the value of errno.
  func pass(to call: (CInt, UnsafePointer<sockaddr>?, socklen_t) -> CInt, of file: OpenFile) -> CInt {
    unsafe withUnsafePointer(to: storage) { storage in
      unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        unsafe call(file.descriptor, name, byteCount) == 0 ? 0 : errno
      }
    }
  }
}

extension bdaddr_t {
  init(_ address: BluetoothAddress) {
    self.init()
    unsafe withUnsafeMutableBytes(of: &self) { unsafe $0.copyBytes(from: address.leastSignificantFirst) }
  }
}

extension BluetoothAddress {
  init(_ address: bdaddr_t) {
    self.init(leastSignificantFirst: unsafe withUnsafeBytes(of: address) { unsafe Array($0)[...] })
  }
}
