import HoldfastStorage

/// `actuator.state`: the word `locked` or `unlocked` and a newline.
struct LockStateFile: Sendable {
  let path: String

  func read() throws(DeviceFileFault) -> LockState {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(at: path, limit: 16, requirements: [.secret, .noSymbolicLink])
    } catch { throw DeviceFileFault(error) }
    for state in [LockState.locked, .unlocked] where bytes == Self.text(state) { return state }
    throw .corrupt
  }

  /// Durable when it returns.
  func write(_ state: LockState) throws(DeviceFileFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(Self.text(state), at: path, overwrite: true)
    } catch { throw DeviceFileFault(error) }
  }

  private static func text(_ state: LockState) -> [UInt8] {
    Array((state == .locked ? "locked\n" : "unlocked\n").utf8)
  }
}
