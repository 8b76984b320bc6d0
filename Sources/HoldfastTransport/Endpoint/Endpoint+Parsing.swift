extension Endpoint {
  /// The most bytes of the path of a socket: `sun_path` has 108, the last one is NUL.
  static let maximumSocketPathByteCount = 107
  /// The most bytes of any other path, NUL apart.
  static let maximumPathByteCount = 4095

  /// Reads an endpoint.
  ///
  /// A comma ends the path or address and begins an option, so a path cannot contain one. Only the Bluetooth transports have options.
  /// - Throws: the part that is wrong.
  public init(parsing text: String) throws(EndpointError) {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw .transport }
    let rest = text[text.utf8.index(after: colon)...]
    switch text[..<colon] {
    case "unix":
      let path = try Endpoint.path(rest, maximumByteCount: Endpoint.maximumSocketPathByteCount)
      self.init(address: .unix(path: path))
    case "unix-stream":
      let path = try Endpoint.path(rest, maximumByteCount: Endpoint.maximumSocketPathByteCount)
      self.init(address: .unixStream(path: path))
    case "tty":
      let path = try Endpoint.path(rest, maximumByteCount: Endpoint.maximumPathByteCount)
      self.init(address: .terminal(path: path))
    case "l2cap":
      let (peer, options) = try EndpointOptions.split(rest, known: [.psm, .adapter, .security])
      // Source: Bluetooth Core 5.4, volume 3 part A, section 4.2: odd, and the upper byte even.
      guard let psm = options.number(.psm), psm & 0x0101 == 0x0001 else { throw .psm }
      try self.init(.l2cap(BluetoothAddress(parsing: peer), psm: psm), options)
    case "rfcomm":
      let (peer, options) = try EndpointOptions.split(rest, known: [.channel, .adapter, .security])
      guard let channel = options.number(.channel), 1...30 ~= channel else { throw .channel }
      try self.init(.rfcomm(BluetoothAddress(parsing: peer), channel: UInt8(channel)), options)
    case "le":
      let (peer, options) = try EndpointOptions.split(rest, known: [.psm, .adapter, .security])
      guard let psm = options.number(.psm), 0x01...0xff ~= psm else { throw .psm }
      try self.init(.lowEnergy(BluetoothAddress(parsing: peer), psm: psm), options)
    default:
      throw .transport
    }
  }

  private init(_ address: Address, _ options: EndpointOptions) throws(EndpointError) {
    self.init(address: address, adapter: try options.adapter(), security: try options.security())
  }

  private static func path(_ rest: Substring, maximumByteCount: Int) throws(EndpointError) -> String {
    let (path, _) = try EndpointOptions.split(rest, known: [])
    guard !path.isEmpty else { throw .pathEmpty }
    guard !path.utf8.contains(0) else { throw .pathContainsNUL }
    guard path.utf8.count <= maximumByteCount else { throw .pathTooLong }
    return String(path)
  }
}
