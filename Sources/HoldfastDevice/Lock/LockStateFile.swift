import HoldfastCore
import HoldfastKeys
import HoldfastStorage

/// `actuator.state`: the word `locked` or `unlocked`, a blank, the device id as 32 hexadecimal digits, and a newline.
struct LockStateFile: Sendable {
  let path: String
  let deviceID: DeviceID

  func read() throws(DeviceFileFault) -> LockState {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(at: path, limit: 64, requirements: [.secret, .noSymbolicLink])
    } catch { throw DeviceFileFault(error) }
    for state in [LockState.locked, .unlocked] where bytes == text(state) { return state }
    throw Self.isWellFormed(bytes) ? .otherDevice : .corrupt
  }

  /// Durable when it returns.
  func write(_ state: LockState) throws(DeviceFileFault) {
    do throws(FileError) {
      try Files.writeFileAtomically(text(state), at: path, overwrite: true)
    } catch { throw DeviceFileFault(error) }
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
