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
