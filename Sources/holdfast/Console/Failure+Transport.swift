import HoldfastFormats
import HoldfastTransport

extension Failure {
  /// Creates the failure for a connection that could not be made or was lost.
  package init(_ error: TransportError, endpoint: Endpoint) {
    switch error {
    case .notFound:
      self.init(.unavailable, "there is nothing at \(endpoint)", hint: Self.isItRunning(at: endpoint))
    case .refused where endpoint.scheme.radio != nil:
      self.init(
        .unavailable, "nothing is listening at \(endpoint)",
        hint:
          "is the device running, and is the number right? Check with holdfast doctor \(endpoint.description.shellWord)"
      )
    case .refused:
      self.init(.unavailable, "nothing is listening at \(endpoint)", hint: Self.isItRunning(at: endpoint))
    case .closed:
      self.init(
        .unavailable, "the other end closed the connection", hint: "try again; is the device running, and in range?")
    case .timedOutWaiting where endpoint.scheme.radio != nil:
      self.init(
        .unavailable, "\(endpoint) did not answer in time",
        hint: "try again, or pair the two hosts: device serve and prove accept --pair")
    case .timedOutWaiting, .timedOutReading, .timedOutSending:
      self.init(
        .unavailable, "the other end did not answer in time", hint: "try again, or allow more time with --timeout")
    case .permissionDenied:
      self.init(.noPermission, "no permission for \(endpoint)", hint: Self.admission(to: endpoint))
    case .unknownGroup:
      self.init(
        .malformed, "\(endpoint): there is no group \((endpoint.access?.group ?? "").quoted)",
        hint: "getent group lists the groups; groupadd creates one")
    case .groupNotAllowed:
      self.init(
        .noPermission,
        "\(endpoint): this user may not give a file to the group \((endpoint.access?.group ?? "").quoted)",
        hint: "add the user to the group with usermod -a -G GROUP USER, then log in again")
    case .addressInUse:
      self.init(.unavailable, "\(endpoint) is already in use")
    case .pathOccupied:
      self.init(
        .unavailable, "the file at \(endpoint) is not of the kind that this transport needs, and was left unchanged",
        hint: Self.otherSocket(than: endpoint))
    case .tooLong, .truncated:
      self.init(.malformed, "the other end sent a message that is too long or incomplete")
    case .emptyFrame:
      self.init(.unavailable, "the device restarted in the middle of a round", hint: "try again")
    case .overPeerLimit:
      self.init(
        .unavailable, "the other end does not accept packets as long as this message",
        hint: "its MTU must be at least 4096 bytes")
    case .unsupported:
      self.init(.unavailable, "\(endpoint): the kernel does not have that Bluetooth protocol", hint: Self.askTheDoctor)
    case .noAdapter:
      self.init(.unavailable, "\(endpoint): there is no such Bluetooth adapter", hint: Self.askTheDoctor)
    case .adapterDown:
      self.init(.unavailable, "\(endpoint): the Bluetooth adapter is down", hint: Self.askTheDoctor)
    case .adapterBlocked:
      self.init(.unavailable, "\(endpoint): the Bluetooth adapter is blocked", hint: "sudo rfkill unblock bluetooth")
    case .unreachable:
      self.init(
        .unavailable, "\(endpoint) does not answer by radio",
        hint:
          "is it in range and connectable, and are the hosts paired if it requires that? holdfast scan lists what is in range"
      )
    case .linkLost:
      self.init(.unavailable, "the radio link was lost", hint: "move closer and try again")
    case .notAnnounced:
      self.init(
        .unavailable, "\(endpoint): no PSM or channel is announced there",
        hint: "add the number that device serve printed: rfcomm:ADDR,channel=5 or l2cap:ADDR,psm=0x1001")
    case .notSecured:
      self.init(
        .unavailable, "\(endpoint): the link could not be secured: one end refused pairing or encryption",
        hint: "pair the two hosts, or accept less with security=low at both ends")
    case .cancelled:
      self.init(.unavailable, "the connection was cancelled")
    case .other(let number):
      self.init(.unavailable, "\(endpoint): system error \(number)")
    }
  }

  package static let askTheDoctor = "holdfast doctor shows what is missing"

  private static func isItRunning(at endpoint: Endpoint) -> String {
    let listening = "--listen \(endpoint.description.shellWord)"
    if case .terminal = endpoint.address { return "is the device plugged in, and is that its port?" }
    return endpoint.scheme.isSerial
      ? "is the device or the board's emulator running? To start a device: holdfast device serve \(listening)"
      : "is the device running? To start it: holdfast device serve \(listening), or holdfast device bridge for a board on a serial line"
  }

  /// Returns a hint: the listening end determines which users may connect.
  private static func admission(to endpoint: Endpoint) -> String {
    switch endpoint.address {
    case .socket(let path):
      "run as the user that serves it, or admit a group with --listen "
        + "\(endpoint.scheme.name):\(path),mode=660,group=GROUP".shellWord
        + " (the group also needs access to the folders above it)"
    case .terminal: "run as a user with access to it, such as a member of the group dialout"
    default: "run as a user with access to it"
    }
  }

  /// Returns a hint about the other kind of socket. The file system does not show whether a socket carries packets or
  /// bytes.
  private static func otherSocket(than endpoint: Endpoint) -> String? {
    guard case .socket(let path) = endpoint.address else { return nil }
    return switch endpoint.scheme.framing {
    case .packets:
      "if it is a byte-stream socket, as a board's emulator has, use \("\(Scheme.unixStream.name):\(path)".shellWord)"
    case .stream: "if it is a packet socket, use \("\(Scheme.unix.name):\(path)".shellWord)"
    }
  }

  /// Creates the failure for an endpoint with a syntax error.
  package init(_ error: EndpointError, text: String) {
    let isPath = error == .transport && (text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../"))
    let examples = Scheme.all.flatMap(\.examples)
    let forms = examples.dropLast().joined(separator: ", ") + " or " + examples[examples.count - 1]
    self.init(
      .usage, "'\(text)' is not an endpoint: \(Self.reason(error, text))",
      hint: isPath
        ? "did you mean \("unix:\(text)".shellWord)? see holdfast help endpoints"
        : "\(forms); see holdfast help endpoints")
  }

  private static func reason(_ error: EndpointError, _ text: String) -> String {
    switch error {
    case .transport: "it does not begin with the name of a transport"
    case .pathEmpty: "the path is empty"
    case .pathTooLong: "the path is too long"
    case .pathContainsNUL: "the path contains a NUL"
    case .address:
      if let scheme = Scheme(of: text), scheme.radio == nil {
        "the address does not have the form of \(scheme.form)"
      } else {
        "the Bluetooth address is not six pairs of hex digits"
      }
    case .psm: psmReason(text)
    case .channel: "the channel is not a number from 1 to 30"
    case .adapter: "the adapter is not hci0, hci1, …"
    case .addressKind: "the type of the address is not public or random"
    case .security: "the security is not low, medium or high"
    case .mode: "the mode is not an octal number from 0 to 777"
    case .group: "the group is not a name of 1 to 255 bytes"
    case .unknownOption: "this transport does not have such an option"
    case .duplicateOption: "an option occurs twice"
    }
  }

  /// Returns the reason why the `psm` of an endpoint is refused.
  private static func psmReason(_ text: String) -> String {
    let isLowEnergy = Scheme(of: text) == .lowEnergy
    let range = isLowEnergy ? "the PSM is 0x80 to 0xff" : "the PSM is odd, from 0x1001 on, and its upper byte is even"
    let options = text.split(separator: ",").dropFirst()
    guard let value = options.first(where: { $0.hasPrefix("psm=") })?.dropFirst(4) else {
      return "the psm is missing: \(range)"
    }
    let isHexadecimal = value.hasPrefix("0x")
    guard let number = UInt16(isHexadecimal ? value.dropFirst(2) : value, radix: isHexadecimal ? 16 : 10) else {
      return "its psm is not a number from 0 to 65535: \(range)"
    }
    guard !isLowEnergy, number >= 0x1001 else { return "its psm is out of range: \(range)" }
    return number & 1 == 0 ? "its psm is even: \(range)" : "its psm has an odd upper byte: \(range)"
  }
}

extension Endpoint {
  /// Parses an endpoint of the command line.
  init(argument text: String) throws(Failure) {
    do throws(EndpointError) { try self.init(parsing: text) } catch { throw Failure(error, text: text) }
  }

  /// Parses an endpoint to connect to, whose Bluetooth address must therefore be a specific one.
  init(peerArgument text: String) throws(Failure) {
    try self.init(argument: text)
    try refuseAccess(text)
    guard case .bluetooth(.any, _) = address else { return }
    throw Failure(.usage, "'\(text)' does not name a single device", hint: "holdfast scan lists addresses")
  }

  /// Refuses access rights in an endpoint to connect to: only the listening end sets them.
  func refuseAccess(_ text: String) throws(Failure) {
    guard access != nil else { return }
    throw Failure(
      .usage, "'\(text)' has a mode or a group, which are only for --listen",
      hint: "leave them out: the listening end sets them")
  }
}

extension Failure {
  /// Creates the failure for a Bluetooth adapter that did not carry out a request.
  ///
  /// `name` is a name such as `hci0`; nil if no adapter was named.
  package init(_ error: BluetoothError, adapter name: String?) {
    let adapter = name ?? "the Bluetooth adapter"
    switch error {
    case .unsupported:
      self.init(.unavailable, "the kernel has no Bluetooth", hint: Self.askTheDoctor)
    case .permissionDenied:
      self.init(
        .noPermission, "no permission to use \(adapter) for that, which requires CAP_NET_ADMIN",
        hint: "run it with sudo")
    case .noAdapter:
      let message = name.map { "there is no Bluetooth adapter \($0)" } ?? "there is no Bluetooth adapter"
      self.init(.unavailable, message, hint: Self.askTheDoctor)
    case .adapterDown: self.init(.unavailable, "\(adapter) is powered off", hint: Self.askTheDoctor)
    case .adapterBlocked: self.init(.unavailable, "\(adapter) is blocked by rfkill", hint: Self.askTheDoctor)
    case .adapterUnable:
      self.init(.unavailable, "\(adapter) cannot do that, or is not configured for it", hint: Self.askTheDoctor)
    case .busy:
      self.init(
        .unavailable, "another program is already scanning with \(adapter)",
        hint: "stop that scan: bluetoothctl scan off")
    case .noInstance:
      self.init(
        .unavailable, "other programs use all advertisements that \(adapter) has",
        hint: "stop one of them; those of a killed process end within a minute")
    case .noServer:
      self.init(.unavailable, "no SDP server on this host accepts records", hint: compatibleDaemon)
    case .timedOut, .malformed:
      self.init(.fault, "the kernel gave no valid answer about \(adapter)")
    case .refused(let status):
      self.init(.fault, "the kernel refused the operation on \(adapter), with status \(status)")
    case .other(let number):
      self.init(.unavailable, "\(adapter): system error \(number)")
    }
  }
}

/// The instructions for making bluetoothd accept records from other programs.
let compatibleDaemon =
  "run sudo systemctl edit bluetooth, add [Service] ExecStart= ExecStart=/usr/libexec/bluetooth/bluetoothd --compat,"
  + " each on a separate line, and run sudo systemctl restart bluetooth"
