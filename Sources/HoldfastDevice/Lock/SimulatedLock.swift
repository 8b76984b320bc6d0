import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import Synchronization

/// A lock that only records its state, in a file of the device's folder, so that it keeps the state after a restart.
public final class SimulatedLock: Lock, Sendable {
  private let file: LockStateFile
  private let position: Mutex<Position>

  private struct Position {
    var state: LockState
    /// Whether the file durably has this state. It may not, after a failed write or if the process before this one was
    /// stopped.
    var isDurable = false
  }

  /// Reads the recorded state.
  ///
  /// - Throws: a ``DeviceFileFault`` if the file cannot be read.
  package init(_ file: LockStateFile) throws(DeviceFileFault) {
    self.file = file
    position = Mutex(Position(state: try file.read()))
  }

  /// The state of the lock.
  public var current: LockState {
    position.withLock { $0.state }
  }

  /// Moves the lock and records its state durably. If the file cannot be written, the state is the one in the file.
  ///
  /// - Throws: `ActuatorFailure` if the file cannot be written.
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

/// The file `actuator.state`: the word `locked` or `unlocked`, a blank, the device id as 32 hexadecimal digits, and a
/// newline.
package struct LockStateFile: Sendable {
  package let path: String
  package let deviceID: DeviceID

  package init(path: String, deviceID: DeviceID) {
    (self.path, self.deviceID) = (path, deviceID)
  }

  package func read() throws(DeviceFileFault) -> LockState {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(at: path, limit: 64, requirements: [.secret, .noSymbolicLink])
    } catch { throw .file(error) }
    for state in [LockState.locked, .unlocked] where bytes == text(state) { return state }
    throw Self.isWellFormed(bytes) ? .otherDevice : .corrupt
  }

  /// Writes the state, which is durable when this returns.
  package func write(_ state: LockState) throws(DeviceFileFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(text(state), at: path, overwrite: true)
    } catch { throw .file(error) }
  }

  private func text(_ state: LockState) -> [UInt8] {
    Array("\(state == .locked ? "locked" : "unlocked") \(hexadecimal(deviceID))\n".utf8)
  }

  private static func isWellFormed(_ bytes: [UInt8]) -> Bool {
    let words = String(decoding: bytes, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 2, words[0] == "locked" || words[0] == "unlocked", words[1].last == "\n" else { return false }
    return fixedBytes(hexadecimal: String(words[1].dropLast())) as DeviceID? != nil
  }
}
