import CBlueZ
import Glibc

/// The kernel's Bluetooth management interface, beside bluetoothd where that runs.
///
/// Reading what adapters there are takes no privilege; everything else, and every event, takes CAP_NET_ADMIN.
/// Source: BlueZ, mgmt(7).
final class ManagementSocket: Sendable {
  private let file: OpenFile

  /// How long the kernel may take for an answer: powering an adapter up is the slowest, and is not done here.
  static let answerMilliseconds = 5000
  /// An event has at most this many bytes: the longest found are reports of devices with extended advertising, some 1,700.
  private static let maximumEventByteCount = 4096

  /// Takes over one end of a connection of packets.
  init(file: OpenFile) {
    self.file = file
  }

  /// - Throws: ``BluetoothError/unsupported`` where the kernel has no Bluetooth.
  convenience init() throws(BluetoothError) {
    do throws(TransportError) {
      let type = CInt(SOCK_RAW.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
      let file = OpenFile(taking: try checked(socket(AF_BLUETOOTH, type, BTPROTO_HCI)))
      var address = sockaddr_hci()
      address.hci_family = sa_family_t(AF_BLUETOOTH)
      address.hci_dev = UInt16(HCI_DEV_NONE)
      address.hci_channel = UInt16(HCI_CHANNEL_CONTROL)
      let byteCount = socklen_t(MemoryLayout<sockaddr_hci>.size)
      try checked(
        unsafe withUnsafePointer(to: address) { address in
          unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            unsafe bind(file.descriptor, $0, byteCount)
          }
        })
      self.init(file: file)
    } catch { throw BluetoothError(error) }
  }

  /// Gives the kernel `command`; its answer is an event.
  func send(_ command: ManagementCommand) throws(BluetoothError) {
    let bytes = command.bytes
    while unsafe Glibc.send(file.descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL)) < 0 {
      guard errno == EINTR else { throw BluetoothError(TransportError(errno: errno)) }
    }
  }

  /// Gives the kernel `command` and waits for what it returns. Events that come before go to `meanwhile`.
  ///
  /// - Throws: what its status says, ``BluetoothError/timedOut``.
  @discardableResult
  func execute(
    _ command: ManagementCommand, timeoutMilliseconds: Int = answerMilliseconds,
    meanwhile: (UInt16, ManagementEvent) -> Void = { _, _ in }
  ) throws(BluetoothError) -> ArraySlice<UInt8> {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    try send(command)
    while let (adapter, event) = try next(by: deadline) {
      guard case .done(command.code.rawValue, let status, let result) = event, adapter == command.adapter else {
        meanwhile(adapter, event)
        continue
      }
      guard status == 0 else { throw BluetoothError(status: status) }
      return result
    }
    throw .timedOut
  }

  /// The next event and the adapter that it is of; nil once `deadline` has passed or `signal` was raised.
  func next(
    by deadline: Deadline, unless signal: Signal? = nil
  ) throws(BluetoothError) -> (adapter: UInt16, event: ManagementEvent)? {
    var buffer = [UInt8](repeating: 0, count: ManagementSocket.maximumEventByteCount)
    while try wait(by: deadline, unless: signal) {
      let count = unsafe recv(file.descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
      if count == 0 { throw .malformed }
      if count < 0 {
        guard errno == EINTR || errno == EAGAIN else { throw BluetoothError(TransportError(errno: errno)) }
      } else if let event = ManagementEvent.read(buffer[..<count]) {
        return event
      }
    }
    return nil
  }

  private func wait(by deadline: Deadline, unless signal: Signal?) throws(BluetoothError) -> Bool {
    guard !deadline.hasPassed else { return false }
    do throws(TransportError) {
      return try file.wait(for: POLLIN, until: deadline, unless: signal) == .ready
    } catch { throw BluetoothError(error) }
  }
}
