import HoldfastCore

/// The place at which a peer is reached, in socat's notation: `unix:PATH`, `l2cap:ADDR,psm=0x1001`, `rfcomm:ADDR,channel=5`,
/// `le:ADDR,psm=0x80`, `tty:PATH`, `unix-stream:PATH`.
///
/// Bluetooth endpoints also take `hci=hci0` and `security=low|medium|high`, and `le` takes `type=public|random`. A listening
/// socket in the file system takes `mode=660` and `group=lock`.
public struct Endpoint: Sendable, Hashable {
  /// The minimum security of a Bluetooth connection.
  package enum Security: String, Sendable, Hashable, CaseIterable {
    /// A link that need not be encrypted.
    case low
    /// An encrypted link; the peer need not have been authenticated.
    case medium
    /// An encrypted link to a peer that was authenticated by pairing.
    case high
  }

  /// The transport.
  package let scheme: Scheme
  /// The path or address at which the transport finds the peer.
  package let address: Address
  /// The number of the local Bluetooth adapter, 0 for `hci0`; nil lets the system choose.
  package let adapter: UInt16?
  /// The minimum security of a Bluetooth connection; nil leaves it to the system.
  package let security: Security?

  /// The access rights to a listening socket in the file system; nil restricts it to the socket's owner.
  package let access: SocketAccess?

  /// Creates the endpoint of a Bluetooth port.
  package init(_ device: BluetoothAddress, _ port: BluetoothPort, adapter: UInt16?, security: Security? = nil) {
    (scheme, address, access) = (port.scheme, .bluetooth(device, port), nil)
    (self.adapter, self.security) = (adapter, security)
  }
}

extension Endpoint: CustomStringConvertible {
  /// The endpoint as text. Parsing the text gives the same endpoint.
  public var description: String {
    var text = "\(scheme.name):\(address)"
    if let adapter { text += ",hci=hci\(adapter)" }
    if let security { text += ",security=\(security.rawValue)" }
    if let mode = access?.mode { text += ",mode=\(String(mode, radix: 8))" }
    if let group = access?.group { text += ",group=\(group)" }
    return text
  }
}

extension Endpoint {
  /// Parses an endpoint.
  ///
  /// A comma ends the path or address and begins an option, so a path cannot contain one.
  /// - Throws: ``EndpointError``, which names the part that is wrong.
  public init(parsing text: String) throws(EndpointError) {
    guard let scheme = Scheme(of: text) else { throw .transport }
    let rest = Substring(text.utf8.dropFirst(scheme.name.utf8.count + 1))
    let (place, options) = try EndpointOptions.split(rest, known: scheme.options)
    self.scheme = scheme
    address = try scheme.parseAddress(place, options)
    adapter = try options.adapter()
    security = try options.security()
    access = try options.access()
  }
}

/// The options that follow the path or address of an endpoint: `,name=value`, each name at most once.
package struct EndpointOptions {
  package enum Name: String {
    case psm, channel, security, mode, group
    case adapter = "hci"
    case kind = "type"
  }

  private var values: [Name: Substring] = [:]

  /// Splits `text` at its commas.
  ///
  /// - Throws: ``EndpointError/unknownOption`` for an option that is not `known` or has no value,
  ///   ``EndpointError/duplicateOption``.
  package static func split(
    _ text: Substring, known: Set<Name>
  ) throws(EndpointError) -> (subject: Substring, options: EndpointOptions) {
    // The split is by bytes: a comma that a combining accent follows is still a comma.
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

  /// Returns the value of `name`, decimal, or hexadecimal after `0x`; nil if the option is absent.
  ///
  /// - Throws: `error` if the value is not a number or is above 65535.
  package func number(_ name: Name, orThrow error: EndpointError) throws(EndpointError) -> UInt16? {
    guard let text = values[name] else { return nil }
    let number =
      text.hasPrefix("0x")
      ? EndpointOptions.digits(text.dropFirst(2), radix: 16) : EndpointOptions.digits(text, radix: 10)
    guard let number else { throw error }
    return number
  }

  /// Returns the number of the adapter; nil if the option is absent.
  package func adapter() throws(EndpointError) -> UInt16? {
    guard let text = values[.adapter] else { return nil }
    guard text.hasPrefix("hci"), let number = EndpointOptions.digits(text.dropFirst(3), radix: 10),
      String(number).utf8.count == text.utf8.count - 3
    else { throw .adapter }
    return number
  }

  /// Returns the kind of the address; public if the option is absent.
  package func addressKind() throws(EndpointError) -> BluetoothAddress.Kind {
    guard let text = values[.kind] else { return .public }
    guard let kind = BluetoothAddress.Kind(rawValue: String(text)) else { throw .addressKind }
    return kind
  }

  /// Returns the security; nil if the option is absent.
  package func security() throws(EndpointError) -> Endpoint.Security? {
    guard let text = values[.security] else { return nil }
    guard let security = Endpoint.Security(rawValue: String(text)) else { throw .security }
    return security
  }

  /// Returns the access rights to a socket in the file system; nil if both options are absent.
  package func access() throws(EndpointError) -> SocketAccess? {
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

  /// Reads a number that consists only of digits. The standard library's initialiser would accept a sign as well.
  private static func digits(_ text: Substring, radix: Int) -> UInt16? {
    text.utf8.allSatisfy { hexadecimalValue($0) != nil } ? UInt16(text, radix: radix) : nil
  }
}

/// The part of an endpoint that is wrong.
public enum EndpointError: Error, Equatable, Sendable {
  /// The part before the first colon is missing, or is not the name of a transport.
  case transport
  /// The path is empty.
  case pathEmpty
  /// The path is longer than 107 bytes (sockets) or 4095 bytes (terminals).
  case pathTooLong
  /// The path contains a NUL.
  case pathContainsNUL
  /// The address does not have the form that the transport needs: for Bluetooth, six pairs of hex digits with colons between
  /// them.
  case address
  /// `psm` is not a number, is even, out of range or reserved for standards; or it is missing although the transport is `le`.
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
  /// `group` is empty, has more than 255 bytes, or contains a NUL.
  case group
  /// The transport does not have the option, or the option has no value.
  case unknownOption
  /// An option is given twice.
  case duplicateOption
}
