/// What an accepted command moves: a lock, a charger, a pump.
public protocol Actuator: ~Copyable {
  /// Carries out `request` and appends what it has to say, at most 1024 bytes, to `result`. Called once for each accepted
  /// round, after its record is durable. The commands of users (``UserCommandName``) never come here.
  mutating func perform(_ request: borrowing Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure)
}

/// The command was accepted but could not be carried out.
public struct ActuatorFailure: Error, Equatable {
  /// Whether the actuator does not know the command at all, so that policy allows what nothing here does.
  public let isUnknownCommand: Bool

  public init(isUnknownCommand: Bool = false) {
    self.isUnknownCommand = isUnknownCommand
  }
}
