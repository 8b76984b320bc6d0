/// Where a peer is, written the way socat writes it: `unix:PATH`, `l2cap:ADDR,psm=0x1001`, `rfcomm:ADDR,channel=5`,
/// `le:ADDR,psm=0x80`, `tty:PATH`, `unix-stream:PATH`. Bluetooth's take `hci=hci0` and `security=low|medium|high` too, and `le` takes
/// `type=public|random`; a socket in the file system takes `mode=660` and `group=lock` where one listens.
package struct Endpoint: Sendable, Hashable {
  /// The transport, and what it needs to find the peer.
  package enum Address: Sendable, Hashable {
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
  package enum Security: String, Sendable, Hashable, CaseIterable {
    /// No encryption is asked for.
    case low
    /// An encrypted link; the peer need not have been authenticated.
    case medium
    /// An encrypted link to a peer that was authenticated by pairing.
    case high
  }

  /// The transport, and what it needs to find the peer.
  package let address: Address
  /// The number of the local Bluetooth adapter, 0 for `hci0`; nil leaves the choice to the system.
  package let adapter: UInt16?
  /// The least security of a Bluetooth connection; nil leaves it to the system.
  package let security: Security?

  /// Who may connect to a socket in the file system where one listens; nil for its owner only.
  package let access: SocketAccess?

  init(address: Address, adapter: UInt16? = nil, security: Security? = nil, access: SocketAccess? = nil) {
    self.access = access
    self.address = address
    self.adapter = adapter
    self.security = security
  }
}

extension Endpoint: CustomStringConvertible {
  /// The endpoint as text, which parses to the same endpoint.
  package var description: String {
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

extension Endpoint {
  /// The most bytes of the path of a socket: `sun_path` has 108, the last one is NUL.
  static let maximumSocketPathByteCount = 107
  /// The most bytes of any other path, NUL apart.
  static let maximumPathByteCount = 4095

  /// Reads an endpoint.
  ///
  /// A comma ends the path or address and begins an option, so a path cannot contain one. A terminal has no options.
  /// - Throws: the part that is wrong.
  package init(parsing text: String) throws(EndpointError) {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw .transport }
    let rest = text[text.utf8.index(after: colon)...]
    switch text[..<colon] {
    case "unix":
      let (path, access) = try Endpoint.socketPath(rest)
      self.init(address: .unix(path: path), access: access)
    case "unix-stream":
      let (path, access) = try Endpoint.socketPath(rest)
      self.init(address: .unixStream(path: path), access: access)
    case "tty":
      let (path, _) = try EndpointOptions.split(rest, known: [])
      try Endpoint.check(path, maximumByteCount: Endpoint.maximumPathByteCount)
      self.init(address: .terminal(path: String(path)))
    case "l2cap":
      let (peer, options) = try EndpointOptions.split(rest, known: [.psm, .adapter, .security])
      let psm = try options.number(.psm, orThrow: .psm)
      guard psm.map(BluetoothPort.isDynamic(psm:)) ?? true else { throw .psm }
      try self.init(peer, .l2cap(psm: psm), options)
    case "rfcomm":
      let (peer, options) = try EndpointOptions.split(rest, known: [.channel, .adapter, .security])
      let channel = try options.number(.channel, orThrow: .channel)
      guard channel.map(BluetoothPort.isServer(channel:)) ?? true else { throw .channel }
      try self.init(peer, .rfcomm(channel: channel.map { UInt8($0) }), options)
    case "le":
      let (peer, options) = try EndpointOptions.split(rest, known: [.psm, .kind, .adapter, .security])
      guard let psm = try options.number(.psm, orThrow: .psm), BluetoothPort.isDynamic(lowEnergyPSM: psm) else {
        throw .psm
      }
      try self.init(peer, .lowEnergy(psm: psm, options.addressKind()), options)
    default:
      throw .transport
    }
  }

  private init(_ device: Substring, _ port: BluetoothPort, _ options: EndpointOptions) throws(EndpointError) {
    let address = Address.bluetooth(try BluetoothAddress(parsing: device), port)
    self.init(address: address, adapter: try options.adapter(), security: try options.security())
  }

  private static func socketPath(_ rest: Substring) throws(EndpointError) -> (String, SocketAccess?) {
    let (path, options) = try EndpointOptions.split(rest, known: [.mode, .group])
    try check(path, maximumByteCount: maximumSocketPathByteCount)
    return (String(path), try options.access())
  }

  private static func check(_ path: Substring, maximumByteCount: Int) throws(EndpointError) {
    guard !path.isEmpty else { throw .pathEmpty }
    guard !path.utf8.contains(0) else { throw .pathContainsNUL }
    guard path.utf8.count <= maximumByteCount else { throw .pathTooLong }
  }
}

/// What follows the path or address of an endpoint: `,name=value`, each name at most once.
struct EndpointOptions {
  enum Name: String {
    case psm, channel, security, mode, group
    case adapter = "hci"
    case kind = "type"
  }

  private var values: [Name: Substring] = [:]

  /// Takes `text` apart at its commas.
  ///
  /// - Throws: ``EndpointError/unknownOption`` for one that is not `known` or has no value,
  ///   ``EndpointError/duplicateOption``.
  static func split(
    _ text: Substring, known: Set<Name>
  ) throws(EndpointError) -> (subject: Substring, options: EndpointOptions) {
    // By bytes: a comma with a combining accent after it is still a comma.
    var parts = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map(Substring.init)
    let subject = parts.removeFirst()
    var options = EndpointOptions()
    for part in parts {
      let pieces = part.utf8.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        .map(Substring.init)
      guard pieces.count == 2, let name = Name(rawValue: String(pieces[0])), known.contains(name) else {
        throw .unknownOption
      }
      guard options.values.updateValue(pieces[1], forKey: name) == nil else { throw .duplicateOption }
    }
    return (subject, options)
  }

  /// The value of `name`, decimal, or hexadecimal after `0x`; nil where it is absent.
  ///
  /// - Throws: `error` where it is no number, or over 65535.
  func number(_ name: Name, orThrow error: EndpointError) throws(EndpointError) -> UInt16? {
    guard let text = values[name] else { return nil }
    let number =
      text.hasPrefix("0x")
      ? EndpointOptions.digits(text.dropFirst(2), radix: 16) : EndpointOptions.digits(text, radix: 10)
    guard let number else { throw error }
    return number
  }

  /// The number of the adapter, nil where the option is absent.
  func adapter() throws(EndpointError) -> UInt16? {
    guard let text = values[.adapter] else { return nil }
    guard text.hasPrefix("hci"), let number = EndpointOptions.digits(text.dropFirst(3), radix: 10),
      String(number).utf8.count == text.utf8.count - 3
    else { throw .adapter }
    return number
  }

  /// The kind of the address, public where the option is absent.
  func addressKind() throws(EndpointError) -> BluetoothAddress.Kind {
    guard let text = values[.kind] else { return .public }
    guard let kind = BluetoothAddress.Kind(rawValue: String(text)) else { throw .addressKind }
    return kind
  }

  /// The security, nil where the option is absent.
  func security() throws(EndpointError) -> Endpoint.Security? {
    guard let text = values[.security] else { return nil }
    guard let security = Endpoint.Security(rawValue: String(text)) else { throw .security }
    return security
  }

  /// Who may connect to a socket in the file system, nil where both options are absent.
  func access() throws(EndpointError) -> SocketAccess? {
    var mode: UInt16?
    if let text = values[.mode] {
      guard text.utf8.count <= 4, let number = EndpointOptions.digits(text, radix: 8), number <= 0o777 else {
        throw .mode
      }
      mode = number
    }
    let group = values[.group].map { String($0) }
    if let group {
      guard 1...255 ~= group.utf8.count, !group.utf8.contains(0) else { throw .group }
    }
    return mode == nil && group == nil ? nil : SocketAccess(mode: mode, group: group)
  }

  /// Digits alone: the initialiser of the standard library would take a sign as well.
  private static func digits(_ text: Substring, radix: Int) -> UInt16? {
    text.utf8.allSatisfy { hexDigitValue($0) != nil } ? UInt16(text, radix: radix) : nil
  }
}

/// Which part of an endpoint is wrong.
package enum EndpointError: Error, Equatable, Sendable {
  /// The part before the first colon is missing, or names no transport.
  case transport
  /// The path is empty.
  case pathEmpty
  /// The path is longer than 107 bytes (sockets) or 4095 bytes (terminals).
  case pathTooLong
  /// The path contains a NUL.
  case pathContainsNUL
  /// The Bluetooth address is not six pairs of hex digits with colons between them.
  case address
  /// `psm` is not a number, even, out of range, or reserved for standards; or it is missing where the transport is `le`.
  case psm
  /// `channel` is not a number from 1 to 30.
  case channel
  /// `hci` is not `hci0` to `hci65535`.
  case adapter
  /// `type` is not `public` or `random`.
  case addressKind
  /// `security` is not `low`, `medium` or `high`.
  case security
  /// `mode` is not an octal number from 0 to 777.
  case mode
  /// `group` is empty, has more than 255 bytes, or a NUL.
  case group
  /// An option that this transport does not have, or one without a value.
  case unknownOption
  /// An option is given twice.
  case duplicateOption
}
