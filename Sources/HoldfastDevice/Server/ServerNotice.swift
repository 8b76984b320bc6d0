import HoldfastCore
import HoldfastTransport

/// Something that whoever runs a server may want to say. It may come from any thread.
public enum ServerNotice: Sendable, Equatable {
  /// The policy that is in force from now on: at the start, and after each change of the file.
  case policy(PolicyReading)
  /// A peer was accepted; `connection` counts them from 1.
  case connected(connection: UInt64)
  /// A round ended.
  case answered(connection: UInt64, Status)
  /// A connection ended, by the peer or by this end.
  case disconnected(connection: UInt64)
  /// A connection ended, because all places were taken and its peer had not proved itself.
  case displaced(connection: UInt64)
  /// A peer was sent away: all places are taken.
  case busy
  /// A round could not begin; its connection was ended.
  case fault(connection: UInt64, SessionFault)
  /// The ledger could not be written at the end; what was accepted is safe, the last totals are not.
  case ledgerFault(LedgerFault)
  /// No peer could be accepted just now; it is tried again.
  case acceptFault(TransportError)
}

/// Why a server could not start, or ended by itself.
public enum ServerFault: Error, Equatable {
  case folder(DeviceFolderFault)
  /// An endpoint cannot be listened at, or is gone.
  case endpoint(Endpoint, TransportError)
  case ledger(LedgerFault)
  /// The process has no descriptors left, or may not have as many as its connections may need.
  case noDescriptors
}
