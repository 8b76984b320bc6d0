import HoldfastCore
import Synchronization

/// A lock that only remembers what it was told, in a file of the device's folder, so that a restart changes nothing.
public final class SimulatedLock: Lock, Sendable {
  private let file: LockStateFile
  private let position: Mutex<Position>

  private struct Position {
    var state: LockState
    /// Whether the file says so for good: not after a write that failed, nor where a process before this one was stopped.
    var isDurable = false
  }

  /// Reads where the lock stands.
  init(_ file: LockStateFile) throws(DeviceFileFault) {
    self.file = file
    position = Mutex(Position(state: try file.read()))
  }

  /// Where it stands.
  public var current: LockState {
    position.withLock { $0.state }
  }

  /// Moves it. When the file cannot be written, it stands where the file says now.
  public func move(to target: LockState) throws(ActuatorFailure) {
    let isMoved = position.withLock { position in
      if position.state == target, position.isDurable { return true }
      do throws(DeviceFileFault) {
        try file.write(target)
        position = Position(state: target, isDurable: true)
        return true
      } catch {
        position = Position(state: (try? file.read()) ?? position.state)
        return false
      }
    }
    guard isMoved else { throw ActuatorFailure() }
  }
}
