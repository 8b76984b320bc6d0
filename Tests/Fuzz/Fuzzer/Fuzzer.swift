import FuzzTargets
import Glibc

/// The target that `HOLDFAST_FUZZ_TARGET` names.
nonisolated(unsafe) private var target = FuzzTarget.all[0]

/// Finds the target. Without a name, prints the table of all targets: name, longest input, and files.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
  _ argumentCount: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>
) -> CInt {
  guard let name = getenv("HOLDFAST_FUZZ_TARGET") else {
    for target in FuzzTarget.all { print(target.name, target.maximumByteCount, target.sources.joined(separator: " ")) }
    exit(0)
  }
  guard let named = FuzzTarget.all.first(where: { $0.name == String(cString: name) }) else {
    fputs("there is no fuzz target of this name\n", stderr)
    exit(64)
  }
  target = named
  return 0
}

/// Gives the fuzzer's bytes to the target.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  do { try target.run(Array(UnsafeBufferPointer(start: data, count: count))) } catch {
    fatalError("\(target.name): \(error)")
  }
  return 0
}
