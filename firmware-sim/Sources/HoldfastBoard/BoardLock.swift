import CBoard
import HoldfastCore

/// The lock: the board's first LED, which is on while it is unlocked. Without power it is locked.
///
/// Source: Arm Application Note AN386, FPGA system control and I/O.
public struct BoardLock: Lock {
  private static let lights: UInt = 0x4002_8000

  public init() {}

  public var current: LockState { board_load(Self.lights) & 1 == 0 ? .locked : .unlocked }

  public mutating func move(to target: LockState) throws(ActuatorFailure) {
    let others = board_load(Self.lights) & ~1
    board_store(Self.lights, target == .locked ? others : others | 1)
    guard current == target else { throw ActuatorFailure() }
  }
}
