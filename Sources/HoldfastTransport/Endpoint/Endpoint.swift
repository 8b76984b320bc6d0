/// Where a peer is, written the way socat writes it: `unix:PATH`, `l2cap:ADDR,psm=0x1001`, `rfcomm:ADDR,channel=5`,
/// `le:ADDR,psm=0x80`, `tty:PATH`, `unix-stream:PATH`.
public struct Endpoint: Sendable, Hashable {
  /// The transport, and what it needs to find the peer.
  public enum Address: Sendable, Hashable {
    /// A socket of packets in the file system.
    case unix(path: String)
    /// A socket of bytes in the file system.
    case unixStream(path: String)
    /// A serial line.
    case terminal(path: String)
    /// Bluetooth L2CAP: an odd `psm` whose upper byte is even.
    case l2cap(BluetoothAddress, psm: UInt16)
    /// Bluetooth RFCOMM: `channel` 1 to 30.
    case rfcomm(BluetoothAddress, channel: UInt8)
    /// L2CAP over Bluetooth Low Energy: `psm` 0x01 to 0xff.
    case lowEnergy(BluetoothAddress, psm: UInt16)
  }

  /// The least security that a Bluetooth connection must have.
  public enum Security: String, Sendable, Hashable, CaseIterable {
    /// No encryption is asked for.
    case low
    /// An encrypted link; the peer need not have been authenticated.
    case medium
    /// An encrypted link to a peer that was authenticated by pairing.
    case high
  }

  /// The transport, and what it needs to find the peer.
  public let address: Address
  /// The number of the local Bluetooth adapter, 0 for `hci0`; nil leaves the choice to the system.
  public let adapter: UInt16?
  /// The least security of a Bluetooth connection; nil leaves it to the system.
  public let security: Security?

  init(address: Address, adapter: UInt16? = nil, security: Security? = nil) {
    self.address = address
    self.adapter = adapter
    self.security = security
  }
}

extension Endpoint: CustomStringConvertible {
  /// The endpoint as text, which parses to the same endpoint.
  public var description: String {
    var text =
      switch address {
      case .unix(let path): "unix:\(path)"
      case .unixStream(let path): "unix-stream:\(path)"
      case .terminal(let path): "tty:\(path)"
      case .l2cap(let peer, let psm): "l2cap:\(peer),psm=0x\(String(psm, radix: 16))"
      case .rfcomm(let peer, let channel): "rfcomm:\(peer),channel=\(channel)"
      case .lowEnergy(let peer, let psm): "le:\(peer),psm=0x\(String(psm, radix: 16))"
      }
    if let adapter { text += ",hci=hci\(adapter)" }
    if let security { text += ",security=\(security.rawValue)" }
    return text
  }
}
