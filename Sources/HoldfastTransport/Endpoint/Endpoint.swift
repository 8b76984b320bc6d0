/// Where a peer is, written the way socat writes it: `unix:PATH`, `l2cap:ADDR,psm=0x1001`, `rfcomm:ADDR,channel=5`,
/// `le:ADDR,psm=0x80`, `tty:PATH`, `unix-stream:PATH`. Bluetooth's take `hci=hci0` and `security=low|medium|high` too, and `le` takes
/// `type=public|random`; a socket in the file system takes `mode=660` and `group=lock` where one listens.
public struct Endpoint: Sendable, Hashable {
  /// The transport, and what it needs to find the peer.
  public enum Address: Sendable, Hashable {
    /// A socket of packets in the file system.
    case unix(path: String)
    /// A socket of bytes in the file system.
    case unixStream(path: String)
    /// A serial line.
    case terminal(path: String)
    /// A Bluetooth device: the peer's address where one connects; where one listens, that of an adapter, or any.
    case bluetooth(BluetoothAddress, BluetoothPort)
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

  /// Who may connect to a socket in the file system where one listens; nil for its owner only.
  public let access: SocketAccess?

  init(address: Address, adapter: UInt16? = nil, security: Security? = nil, access: SocketAccess? = nil) {
    self.access = access
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
      case .bluetooth(let device, .l2cap(let psm)):
        "l2cap:\(device)" + (psm.map { ",psm=0x\(String($0, radix: 16))" } ?? "")
      case .bluetooth(let device, .rfcomm(let channel)): "rfcomm:\(device)" + (channel.map { ",channel=\($0)" } ?? "")
      case .bluetooth(let device, .lowEnergy(let psm, let kind)):
        "le:\(device),psm=0x\(String(psm, radix: 16))" + (kind == .random ? ",type=random" : "")
      }
    if let adapter { text += ",hci=hci\(adapter)" }
    if let security { text += ",security=\(security.rawValue)" }
    if let mode = access?.mode { text += ",mode=\(String(mode, radix: 8))" }
    if let group = access?.group { text += ",group=\(group)" }
    return text
  }
}
