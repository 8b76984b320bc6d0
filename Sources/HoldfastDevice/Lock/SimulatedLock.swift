import HoldfastCore
import Synchronization

/// A lock that only remembers what it was told, in a file of the device's folder, so that a restart changes nothing.
public final class SimulatedLock: Sendable {
  private let file: LockStateFile
  private let state: Mutex<LockState>

  /// Reads where the lock stands.
  init(_ file: LockStateFile) throws(DeviceFileFault) {
    self.file = file
    state = Mutex(try file.read())
  }

  /// Where it stands.
  public var current: LockState {
    state.withLock { $0 }
  }

  /// Moves it; when the file cannot be written it stays where it is.
  func move(to target: LockState) throws(ActuatorFailure) {
    let isMoved = state.withLock { state in
      if state == target { return true }
      do throws(DeviceFileFault) { try file.write(target) } catch { return false }
      state = target
      return true
    }
    guard isMoved else { throw ActuatorFailure() }
  }
}

/// Where a lock stands.
public enum LockState: Sendable, Equatable {
  case locked, unlocked
}
