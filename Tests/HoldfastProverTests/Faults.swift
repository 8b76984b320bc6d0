import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization
import Testing

import HoldfastProver

/// A channel that fails or signals at a chosen message of the device.
final class FaultyChannel: MessageChannel {
  /// The treatment of a message of the device.
  enum Fault: CaseIterable, Sendable {
    case closed, truncated, cut, long
  }

  private let connection: Connection
  private let fault: Fault?
  /// The device's message that the fault meets, from 1.
  private let faultyNumber: Int
  private let onReceive: @Sendable () -> Void
  private let received = Atomic(0)
  private let shutdowns = Atomic(0)

  init(
    _ connection: Connection, _ fault: Fault? = nil, at number: Int = 1,
    onReceive: @escaping @Sendable () -> Void = {}
  ) {
    (self.connection, self.fault, faultyNumber, self.onReceive) = (connection, fault, number, onReceive)
  }

  var shutdownCount: Int { shutdowns.load(ordering: .relaxed) }

  func receive(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> ReceivedMessage {
    onReceive()
    let message = try connection.receive(by: deadline, wholeWithin: wholeMilliseconds)
    guard let fault, received.add(1, ordering: .relaxed).newValue == faultyNumber else { return message }
    switch fault {
    case .closed: throw .closed
    case .truncated: throw .truncated
    case .cut: return ReceivedMessage(Array(message.bytes.dropLast()))
    case .long: return ReceivedMessage(message.bytes + [0])
    }
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    try connection.send(message, by: deadline)
  }

  func shutdown() {
    shutdowns.add(1, ordering: .relaxed)
    connection.shutdown()
  }
}

/// The fault of the state folder with which a call fails; nil if it does not fail, or in another way.
func stateFault(_ body: () throws -> Void) -> StateFolderFault? {
  do {
    try body()
    return nil
  } catch {
    guard case .state(let fault)? = error as? ProverError else { return nil }
    return fault
  }
}
