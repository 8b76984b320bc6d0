/// A transport, under the name with which its endpoints begin: `unix`, `le`.
///
/// ``all`` is the table of transports, one row for each. Everything that distinguishes them, except the system calls that connect
/// and listen, is derived from it: which endpoints are valid, how messages are separated, what `holdfast doctor` examines, and
/// the lists in help pages and error texts.
package struct Scheme: Sendable {
  /// The kind of Bluetooth link that a transport uses.
  package enum Radio: Sendable, Equatable {
    /// BR/EDR. A device may announce its number by SDP.
    case classic
    /// Bluetooth Low Energy. A device may advertise its number.
    case lowEnergy
  }

  /// The part of an endpoint before its first colon.
  package let name: String
  /// The form of an endpoint, with optional parts in brackets, for the help page.
  package let form: String
  /// The description for the help page.
  package let summary: String
  /// The forms that an error text shows to a person whose endpoint is malformed; the first is the one that protocol.md lists.
  package let examples: [String]
  /// The method that separates messages.
  package let framing: Framing
  /// Whether this is a serial line, or a stream socket that replaces one: a device without connections is at its other end.
  ///
  /// Only there do empty frames have a meaning, and only such an endpoint can be the line of a bridge.
  package let isSerial: Bool
  /// The kind of Bluetooth link; nil for a transport that needs no adapter.
  package let radio: Radio?
  /// The options that an endpoint may have.
  package let options: Set<EndpointOptions.Name>
  /// Parses the path or address, and the options that belong to it.
  package let parseAddress: @Sendable (Substring, EndpointOptions) throws(EndpointError) -> Endpoint.Address

  /// All transports, in the order in which texts list them.
  package static let all = [unix, unixStream, terminal, l2cap, rfcomm, lowEnergy]

  /// A packet socket (`SOCK_SEQPACKET`) in the file system.
  package static let unix = Scheme(
    name: "unix", form: "unix:PATH", summary: "a packet socket in the file system (SOCK_SEQPACKET)",
    examples: ["unix:PATH", "unix:PATH,mode=660,group=lock"],
    framing: .packets, isSerial: false, radio: nil, options: [.mode, .group], parseAddress: socket)

  /// A stream socket (`SOCK_STREAM`) in the file system.
  package static let unixStream = Scheme(
    name: "unix-stream", form: "unix-stream:PATH",
    summary: "a byte-stream socket in the file system, as a board's emulator has",
    examples: ["unix-stream:PATH"],
    framing: .stream, isSerial: true, radio: nil, options: [.mode, .group], parseAddress: socket)

  /// A serial line.
  package static let terminal = Scheme(
    name: "tty", form: "tty:PATH", summary: "a serial line", examples: ["tty:PATH"],
    framing: .stream, isSerial: true, radio: nil, options: [],
    parseAddress: { path, _ throws(EndpointError) in
      try check(path, maximumByteCount: maximumPathByteCount)
      return .terminal(path: String(path))
    })

  /// L2CAP over BR/EDR.
  package static let l2cap = Scheme(
    name: "l2cap", form: "l2cap:ADDRESS[,psm=0x1001]",
    summary:
      "Bluetooth L2CAP; the PSM is odd, from 0x1001 on, and its upper byte is even (0x1001, 0x1003, ..., 0x10ff, "
      + "0x1201, ...)",
    examples: ["l2cap:ADDR,psm=0x1001"],
    framing: .packets, isSerial: false, radio: .classic, options: [.psm, .adapter, .security],
    parseAddress: { device, options throws(EndpointError) in
      let psm = try options.number(.psm, orThrow: .psm)
      guard psm.map(BluetoothPort.isDynamic(psm:)) ?? true else { throw .psm }
      return .bluetooth(try BluetoothAddress(parsing: device), .l2cap(psm: psm))
    })

  /// RFCOMM over BR/EDR.
  package static let rfcomm = Scheme(
    name: "rfcomm", form: "rfcomm:ADDRESS[,channel=5]", summary: "Bluetooth RFCOMM; the channel is 1 to 30",
    examples: ["rfcomm:ADDR,channel=5"],
    framing: .stream, isSerial: false, radio: .classic, options: [.channel, .adapter, .security],
    parseAddress: { device, options throws(EndpointError) in
      let channel = try options.number(.channel, orThrow: .channel)
      guard channel.map(BluetoothPort.isServer(channel:)) ?? true else { throw .channel }
      return .bluetooth(try BluetoothAddress(parsing: device), .rfcomm(channel: channel.map { UInt8($0) }))
    })

  /// A credit-based L2CAP channel over Low Energy.
  package static let lowEnergy = Scheme(
    name: "le", form: "le:ADDRESS,psm=0x80[,type=random]",
    summary: "Bluetooth Low Energy; the PSM is 0x80 to 0xff; the type of the address is public or random",
    examples: ["le:ADDR,psm=0x80"],
    framing: .packets, isSerial: false, radio: .lowEnergy, options: [.psm, .kind, .adapter, .security],
    parseAddress: { device, options throws(EndpointError) in
      guard let psm = try options.number(.psm, orThrow: .psm), BluetoothPort.isDynamic(lowEnergyPSM: psm) else {
        throw .psm
      }
      let kind = try options.addressKind()
      return .bluetooth(try BluetoothAddress(parsing: device), .lowEnergy(psm: psm, kind))
    })
}

extension Scheme {
  /// Returns the transport of an endpoint, valid or not; nil if the text begins with no transport's name and a colon.
  package init?(of endpoint: String) {
    guard let colon = endpoint.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    guard let scheme = Scheme.all.first(where: { $0.name == endpoint[..<colon] }) else { return nil }
    self = scheme
  }
}

extension Scheme: Hashable {
  package static func == (left: Scheme, right: Scheme) -> Bool { left.name == right.name }
  package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension Endpoint {
  /// The place at which a transport finds the peer.
  package enum Address: Sendable, Hashable, CustomStringConvertible {
    /// The path of a socket in the file system.
    case socket(path: String)
    /// The path of a terminal.
    case terminal(path: String)
    /// A Bluetooth port. The address is the peer's for a connecting end, and a local adapter's, or any, for a listener.
    case bluetooth(BluetoothAddress, BluetoothPort)

    /// The place as it is written in an endpoint, with the options that belong to it.
    package var description: String {
      switch self {
      case .socket(let path), .terminal(let path): path
      case .bluetooth(let device, .l2cap(let psm)): "\(device)" + (psm.map { ",psm=0x\(String($0, radix: 16))" } ?? "")
      case .bluetooth(let device, .rfcomm(let channel)): "\(device)" + (channel.map { ",channel=\($0)" } ?? "")
      case .bluetooth(let device, .lowEnergy(let psm, let kind)):
        "\(device),psm=0x\(String(psm, radix: 16))" + (kind == .random ? ",type=random" : "")
      }
    }
  }
}

extension Scheme {
  /// The maximum byte count of a socket's path: `sun_path` has 108 bytes, and the last one is NUL.
  private static let maximumSocketPathByteCount = 107
  /// The maximum byte count of any other path, without the NUL.
  private static let maximumPathByteCount = 4095

  @Sendable
  private static func socket(_ path: Substring, _: EndpointOptions) throws(EndpointError) -> Endpoint.Address {
    try check(path, maximumByteCount: maximumSocketPathByteCount)
    return .socket(path: String(path))
  }

  private static func check(_ path: Substring, maximumByteCount: Int) throws(EndpointError) {
    guard !path.isEmpty else { throw .pathEmpty }
    guard !path.utf8.contains(0) else { throw .pathContainsNUL }
    guard path.utf8.count <= maximumByteCount else { throw .pathTooLong }
  }
}

/// The method that separates messages on a connection.
package enum Framing: Sendable, Hashable, CaseIterable {
  /// One message is one packet: `SOCK_SEQPACKET`.
  case packets
  /// A stream of bytes: each message follows its length, two bytes, big-endian.
  case stream
}
