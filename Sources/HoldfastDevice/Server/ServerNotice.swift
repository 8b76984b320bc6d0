import HoldfastCore
import HoldfastTransport

/// Something that whoever runs a server may want to say. It may come from any thread.
public enum ServerNotice: Sendable, Equatable {
  /// The policy that is in force from now on: at the start, and after each change of the file.
  case policy(PolicyReading)
  /// A peer was accepted; `connection` counts them from 1.
  case connected(connection: UInt64, Peer?)
  /// A message was answered whose peer proved nothing by it.
  case answered(connection: UInt64, Status)
  /// A message was answered whose peer has proved itself, or used one of the owner's codes.
  case judged(JudgedRound)
  /// Policy and token allow a command that the actuator does not know; it was answered `internal`.
  case unknownToActuator(connection: UInt64, command: BoundedText<32>)
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

/// How a round of a peer that has proved itself ended.
public struct JudgedRound: Sendable, Equatable {
  /// The number of the connection.
  public var connection: UInt64
  public var status: Status
  /// What the ledger was told: a round, or a user who was activated or unlocked; nil where the round ended before.
  public var event: AuditEvent?

  public init(connection: UInt64, status: Status, event: AuditEvent?) {
    (self.connection, self.status, self.event) = (connection, status, event)
  }

  /// The round, where it was one.
  public var round: AuditedRound? {
    guard case .round(let round) = event else { return nil }
    return round
  }
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
