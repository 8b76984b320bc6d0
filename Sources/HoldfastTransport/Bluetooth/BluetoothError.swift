import Glibc

/// Why the kernel's management interface or the SDP server did not do what was asked.
public enum BluetoothError: Error, Equatable, Sendable {
  /// The kernel has no Bluetooth.
  case unsupported
  /// It takes CAP_NET_ADMIN, or membership in the group that may use the SDP server.
  case permissionDenied
  /// There is no such adapter.
  case noAdapter
  /// The adapter is powered off.
  case adapterDown
  /// The adapter is blocked by rfkill.
  case adapterBlocked
  /// The adapter cannot do that, or is not set up to: Low Energy is off.
  case adapterUnable
  /// Somebody else is doing the same on this adapter.
  case busy
  /// Every advertising instance is taken.
  case noInstance
  /// No SDP server takes records on this host.
  case noServer
  /// The answer did not come in time.
  case timedOut
  /// The answer is not one.
  case malformed
  /// The kernel refused with another status of the management interface.
  case refused(status: UInt8)
  /// Anything else that the operating system answered.
  case other(errno: CInt)

  /// What `status` of the management interface means here.
  ///
  /// Source: BlueZ, mgmt(7), "Error Codes".
  init(status: UInt8) {
    self =
      switch status {
      case 0x01, 0x0b, 0x0c: .adapterUnable
      case 0x08: .timedOut
      case 0x0a: .busy
      case 0x0f: .adapterDown
      case 0x11: .noAdapter
      case 0x12: .adapterBlocked
      case 0x14: .permissionDenied
      default: .refused(status: status)
      }
  }

  /// What a fault of the socket means here.
  init(_ error: TransportError) {
    self =
      switch error {
      case .unsupported: .unsupported
      case .permissionDenied: .permissionDenied
      case .noAdapter, .notFound: .noAdapter
      case .adapterDown: .adapterDown
      case .adapterBlocked: .adapterBlocked
      case .timedOutWaiting, .timedOutReading, .timedOutSending: .timedOut
      case .other(let code): .other(errno: code)
      default: .malformed
      }
  }
}
