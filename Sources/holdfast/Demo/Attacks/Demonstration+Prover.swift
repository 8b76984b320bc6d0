import HoldfastCore
import HoldfastStorage

extension Demonstration {
  /// A prover that is not what it was, or not where it was.
  mutating func attackTheProver() throws(Failure) {
    try copyState(to: "flipped")
    let flipped = ProverFolder(path: playground.path("flipped"))
    let entry = try reading(flipped) { () throws(StateFolderFault) in try flipped.onlyEntry() }
    try flipByte(of: entry.folder.file(EnrolmentFolder.configurationName), at: 20)
    story.expect(
      "a flipped byte in the measurement configuration", Status.deviceMismatch.name,
      try runProver(state: "flipped").statusName)
    story.expect(
      "a prover with an LD_PRELOADed library", Status.integrityMismatch.name,
      try runProver(environment: ["LD_PRELOAD": "libc_malloc_debug.so.0"]).statusName)
    story.expect(
      "a prover with a debugger attached", Status.integrityMismatch.name, try runProver(isTraced: true).statusName)
    let patched = try patchProgram()
    story.expect(
      "a prover whose executable is a patched copy", Status.integrityMismatch.name, try runProver(patched).statusName)
    try moveToAnotherMachine()
  }

  /// A copy of the state folder where the app has its own storage, as it has on any other machine.
  private mutating func moveToAnotherMachine() throws(Failure) {
    try copyState(to: "copied")
    let elsewhere = ["XDG_DATA_HOME": playground.path("elsewhere")]
    do throws(FileError) { try Files.createPrivateDirectory(at: playground.path("elsewhere")) } catch {
      throw Failure(error)
    }
    let ending = try ChildProcess.run(
      [
        try Playground.program, "measure", "--state", playground.path("elsewhere-state"), "--out",
        playground.path("evidence"),
      ], environment: elsewhere)
    guard ending.status == 0 else { throw Failure(.fault, "measuring failed: \(ending.output)") }
    story.expect(
      "a copied state folder, another device secret", Status.deviceMismatch.name,
      try runProver(state: "copied", environment: elsewhere).statusName)
  }

  private func copyState(to name: String) throws(Failure) {
    _ = try ChildProcess.run(["/bin/cp", "-r", playground.path("prover"), playground.path(name)])
  }

  private func flipByte(of path: String, at index: Int) throws(Failure) {
    var bytes = try Input.read(path, limit: 1 << 20)
    guard bytes.indices.contains(index) else { throw Failure(.malformed, "\(path) is too short") }
    bytes[index] ^= 1
    try Output.write(bytes, to: path)
  }

  /// A copy of this program with one word of its help text changed.
  private func patchProgram() throws(Failure) -> String {
    let path = playground.path("patched")
    _ = try ChildProcess.run(["/bin/cp", try Playground.program, path])
    var bytes = try Input.read(path, limit: 1 << 30)
    guard let range = bytes.firstRange(of: Array("Offline hardware attestation".utf8)) else {
      throw Failure(.fault, "there is nothing to patch")
    }
    bytes[range.lowerBound] = UInt8(ascii: "o")
    do throws(FileError) { try Files.writeFileAtomically(bytes, at: path, mode: 0o700, overwrite: true) } catch {
      throw Failure(error)
    }
    return path
  }
}
