import HoldfastTransport

extension Failure {
  /// An adapter did not do what was asked of it.
  ///
  /// `name` is `hci0` and the like; nil where no adapter was named.
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

/// How to have bluetoothd take records of other programs.
let compatibleDaemon =
  "sudo systemctl edit bluetooth, add [Service] ExecStart= ExecStart=/usr/libexec/bluetooth/bluetoothd --compat,"
  + " each on a line, then sudo systemctl restart bluetooth"
