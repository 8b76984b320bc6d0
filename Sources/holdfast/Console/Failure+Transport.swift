import HoldfastFormats
import HoldfastTransport

extension Failure {
  /// Creates the failure for a connection that could not be made or was lost.
  init(_ error: TransportError, endpoint: Endpoint) {
    switch error {
    case .notFound:
      self.init(.unavailable, "nothing is at \(endpoint)", hint: Self.isItRunning(at: endpoint))
    case .refused where endpoint.port != nil:
      self.init(
        .unavailable, "nobody listens at \(endpoint)",
        hint: "is the device running, and is the number right? holdfast doctor \(endpoint.description.shellWord)")
    case .refused:
      self.init(.unavailable, "nobody listens at \(endpoint)", hint: Self.isItRunning(at: endpoint))
    case .closed:
      self.init(
        .unavailable, "the other end closed the connection", hint: "try again; is the device running, and in range?")
    case .timedOutWaiting where endpoint.port != nil:
      self.init(
        .unavailable, "\(endpoint) did not answer in time",
        hint: "try again, or pair the two hosts: device serve and prove have --pair for it")
    case .timedOutWaiting, .timedOutReading, .timedOutSending:
      self.init(.unavailable, "the other end did not answer in time", hint: "try again, or give it longer by --timeout")
    case .permissionDenied:
      self.init(.noPermission, "no permission for \(endpoint)", hint: Self.admission(to: endpoint))
    case .unknownGroup:
      self.init(
        .malformed, "\(endpoint): there is no group \((endpoint.access?.group ?? "").quoted)",
        hint: "getent group lists those that there are; groupadd makes one")
    case .groupNotAllowed:
      self.init(
        .noPermission,
        "\(endpoint): this user may not give a file to the group \((endpoint.access?.group ?? "").quoted)",
        hint: "a user can use groups that the user is in: usermod -a -G GROUP USER, and log in anew")
    case .addressInUse:
      self.init(.unavailable, "somebody else uses \(endpoint) already")
    case .pathOccupied:
      self.init(
        .unavailable, "what is at \(endpoint) is not what that transport needs, and is left alone",
        hint: Self.otherSocket(than: endpoint))
    case .tooLong, .truncated:
      self.init(.malformed, "the other end sent a message that is too long or not whole")
    case .emptyFrame:
      self.init(.unavailable, "the device began anew in the middle of a round", hint: "try again")
    case .overPeerLimit:
      self.init(
        .unavailable, "the other end takes no packets as long as this message",
        hint: "its MTU has to be at least 4096 bytes")
    case .unsupported:
      self.init(.unavailable, "\(endpoint): the kernel has no such Bluetooth protocol", hint: Self.askTheDoctor)
    case .noAdapter:
      self.init(.unavailable, "\(endpoint): there is no such Bluetooth adapter", hint: Self.askTheDoctor)
    case .adapterDown:
      self.init(.unavailable, "\(endpoint): the Bluetooth adapter is down", hint: Self.askTheDoctor)
    case .adapterBlocked:
      self.init(.unavailable, "\(endpoint): the Bluetooth adapter is blocked", hint: "sudo rfkill unblock bluetooth")
    case .unreachable:
      self.init(
        .unavailable, "\(endpoint) does not answer on the radio",
        hint: "is it in range and connectable, and are the hosts paired where it asks for that? holdfast scan")
    case .linkLost:
      self.init(.unavailable, "the radio link was lost", hint: "try again, nearer")
    case .notAnnounced:
      self.init(
        .unavailable, "\(endpoint): no such number is announced there",
        hint: "name it, as device serve prints it: rfcomm:ADDR,channel=5 or l2cap:ADDR,psm=0x1001")
    case .notSecured:
      self.init(
        .unavailable, "\(endpoint): the link could not be secured, one end refused pairing or encryption",
        hint: "pair the two hosts, or ask for less: security=low at both ends")
    case .cancelled:
      self.init(.unavailable, "it was ended")
    case .other(let number):
      self.init(.unavailable, "\(endpoint): system error \(number)")
    }
  }

  static let askTheDoctor = "holdfast doctor says what is missing"

  private static func isItRunning(at endpoint: Endpoint) -> String {
    let listening = "--listen \(endpoint.description.shellWord)"
    return switch endpoint.address {
    case .terminal: "is the device plugged in, and is that its port?"
    case .unixStream: "is the device, or a board's emulator, running? holdfast device serve \(listening)"
    case .unix, .bluetooth:
      "is the device running? holdfast device serve \(listening); device bridge for one behind a serial line"
    }
  }

  /// Returns a hint: the listening end determines which users may connect.
  private static func admission(to endpoint: Endpoint) -> String {
    switch endpoint.address {
    case .unix(let path), .unixStream(let path):
      let scheme = if case .unix = endpoint.address { "unix" } else { "unix-stream" }
      return "run as the user that serves it, or let a group in: --listen "
        + "\(scheme):\(path),mode=660,group=GROUP".shellWord + " (folders on the way to it must let the group pass)"
    case .terminal: return "run as a user who may use it, of the group dialout perhaps"
    case .bluetooth: return "run as a user who may use it"
    }
  }

  /// Returns a hint about the other kind of socket. The file system does not show whether a socket carries packets or
  /// bytes.
  private static func otherSocket(than endpoint: Endpoint) -> String? {
    switch endpoint.address {
    case .unix(let path): "is it a socket of bytes, as a board's emulator has? \("unix-stream:\(path)".shellWord)"
    case .unixStream(let path): "is it a socket of packets? \("unix:\(path)".shellWord)"
    case .terminal, .bluetooth: nil
    }
  }

  /// Creates the failure for an endpoint with a syntax error.
  init(_ error: EndpointError, text: String) {
    let isPath = error == .transport && (text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../"))
    let forms =
      "unix:PATH, unix:PATH,mode=660,group=lock, unix-stream:PATH, tty:PATH, l2cap:ADDR,psm=0x1001, rfcomm:ADDR,channel=5 "
      + "or le:ADDR,psm=0x80"
    self.init(
      .usage, "'\(text)' is not an endpoint: \(Self.reason(error, text))",
      hint: isPath
        ? "did you mean \("unix:\(text)".shellWord)? see holdfast help endpoints"
        : "\(forms); see holdfast help endpoints")
  }

  private static func reason(_ error: EndpointError, _ text: String) -> String {
    switch error {
    case .transport: "it begins with no transport that there is"
    case .pathEmpty: "the path is empty"
    case .pathTooLong: "the path is too long"
    case .pathContainsNUL: "the path has a NUL in it"
    case .address: "the Bluetooth address is not six pairs of hex digits"
    case .psm: psmReason(text)
    case .channel: "the channel is not a number from 1 to 30"
    case .adapter: "the adapter is not hci0, hci1, …"
    case .addressKind: "the type of the address is not public or random"
    case .security: "the security is not low, medium or high"
    case .mode: "the mode is not an octal number from 0 to 777"
    case .group: "the group is not a name of 1 to 255 bytes"
    case .unknownOption: "it has an option that this transport does not have"
    case .duplicateOption: "it has an option twice"
    }
  }

  /// Returns the reason why the `psm` of an endpoint is refused.
  private static func psmReason(_ text: String) -> String {
    let isLowEnergy = text.hasPrefix("le:")
    let range = isLowEnergy ? "the PSM is 0x80 to 0xff" : "the PSM is odd, from 0x1001 on, and its upper byte is even"
    let options = text.split(separator: ",").dropFirst()
    guard let value = options.first(where: { $0.hasPrefix("psm=") })?.dropFirst(4) else {
      return "it has no psm: \(range)"
    }
    let isHexadecimal = value.hasPrefix("0x")
    guard let number = UInt16(isHexadecimal ? value.dropFirst(2) : value, radix: isHexadecimal ? 16 : 10) else {
      return "its psm is no number from 0 to 65535: \(range)"
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
    throw Failure(.usage, "'\(text)' does not say which device", hint: "holdfast scan lists addresses")
  }

  /// Refuses access rights in an endpoint to connect to: only the listening end sets them.
  func refuseAccess(_ text: String) throws(Failure) {
    guard access != nil else { return }
    throw Failure(
      .usage, "'\(text)' has a mode or a group, which go with --listen", hint: "the other end's file has both already")
  }
}

extension Failure {
  /// Creates the failure for a Bluetooth adapter that did not carry out a request.
  ///
  /// `name` is a name such as `hci0`; nil if no adapter was named.
  init(_ error: BluetoothError, adapter name: String?) {
    let adapter = name ?? "the Bluetooth adapter"
    switch error {
    case .unsupported:
      self.init(.unavailable, "the kernel has no Bluetooth", hint: Self.askTheDoctor)
    case .permissionDenied:
      self.init(
        .noPermission, "no permission to use \(adapter) for that, which takes CAP_NET_ADMIN", hint: "run it with sudo")
    case .noAdapter:
      let message = name.map { "there is no Bluetooth adapter \($0)" } ?? "there is no Bluetooth adapter"
      self.init(.unavailable, message, hint: Self.askTheDoctor)
    case .adapterDown: self.init(.unavailable, "\(adapter) is powered off", hint: Self.askTheDoctor)
    case .adapterBlocked: self.init(.unavailable, "\(adapter) is blocked by rfkill", hint: Self.askTheDoctor)
    case .adapterUnable:
      self.init(.unavailable, "\(adapter) cannot do that, or is not set up to", hint: Self.askTheDoctor)
    case .busy:
      self.init(
        .unavailable, "another program searches with \(adapter) already",
        hint: "end its search: bluetoothctl scan off")
    case .noInstance:
      self.init(
        .unavailable, "other programs use all that \(adapter) can advertise",
        hint: "end one of their advertisements; those of a process that was killed go within a minute")
    case .noServer:
      self.init(.unavailable, "no SDP server takes records on this host", hint: compatibleDaemon)
    case .timedOut, .malformed:
      self.init(.fault, "the kernel did not answer about \(adapter) as it should")
    case .refused(let status):
      self.init(.fault, "the kernel refused it for \(adapter), with status \(status)")
    case .other(let number):
      self.init(.unavailable, "\(adapter): system error \(number)")
    }
  }
}

/// The instructions for making bluetoothd accept records from other programs.
let compatibleDaemon =
  "sudo systemctl edit bluetooth, add [Service] ExecStart= ExecStart=/usr/libexec/bluetooth/bluetoothd --compat,"
  + " each on a line, then sudo systemctl restart bluetooth"
