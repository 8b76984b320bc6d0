extension Endpoint {
  /// The most bytes of the path of a socket: `sun_path` has 108, the last one is NUL.
  static let maximumSocketPathByteCount = 107
  /// The most bytes of any other path, NUL apart.
  static let maximumPathByteCount = 4095

  /// Reads an endpoint.
  ///
  /// A comma ends the path or address and begins an option, so a path cannot contain one. A terminal has no options.
  /// - Throws: the part that is wrong.
  public init(parsing text: String) throws(EndpointError) {
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
