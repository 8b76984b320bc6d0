import FuzzTargets
import Glibc

/// The target that `HOLDFAST_FUZZ_TARGET` names.
nonisolated(unsafe) private var target = FuzzTarget.all[0]

/// Finds the target, and tells libFuzzer of its counters: of those that the files in the folder `HOLDFAST_FUZZ_CORPUS` show, or of all.
/// Without a name, prints the table of all targets: name, longest input, and files.
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
  if let folder = getenv("HOLDFAST_FUZZ_CORPUS") {
    Counters.tell(thoseReachedBy: { forEachFile(in: String(cString: folder)) { try? named.run($0) } })
  } else {
    Counters.tellAll()
  }
  return 0
}

/// Calls `body` with the contents of each file.
private func forEachFile(in folder: String, _ body: ([UInt8]) -> Void) {
  guard let entries = opendir(folder) else { return }
  defer { closedir(entries) }
  while let entry = readdir(entries) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    guard let file = fopen("\(folder)/\(name)", "r") else { continue }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    body(Array(bytes[..<fread(&bytes, 1, bytes.count, file)]))
  }
}

/// Gives the fuzzer's bytes to the target.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  do { try target.run(Array(UnsafeBufferPointer(start: data, count: count))) } catch {
    fatalError("\(target.name): \(error)")
  }
  return 0
}
