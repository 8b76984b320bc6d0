import HoldfastCore
import HoldfastTransport

/// Something that whoever runs a bridge may want to say. It may come from any thread.
public enum BridgeNotice: Sendable, Equatable {
  /// A prover got the place; `connection` counts them from 1. `peer` is nil where the transport does not know it.
  case connected(connection: UInt64, Peer?)
  /// A prover is gone, after so many messages from the hardware.
  case disconnected(connection: UInt64, messageCount: UInt64)
  /// The bridge ended a prover's connection.
  case refused(connection: UInt64, Status)
  /// A prover's connection ended for a newcomer: nothing of it had been accepted in time.
  case displaced(connection: UInt64)
  /// A prover was sent away: another has the place.
  case busy
  /// The line cannot be used; it is opened again.
  case hardwareLost(HardwareFault)
  /// A line that was lost is open again.
  case hardwareBack
  /// No prover could be accepted just now; it is tried again.
  case acceptFault(TransportError)
}

/// What is wrong with a line.
public enum HardwareFault: Error, Equatable {
  /// It cannot be opened, ended, or sent what is no message.
  case transport(TransportError)
  /// An empty frame, or a prover's message, was not answered in time.
  case silent
}
