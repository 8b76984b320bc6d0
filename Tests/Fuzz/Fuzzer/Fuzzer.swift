import CComparisons
import FuzzTargets
import Glibc

/// The target that `HOLDFAST_FUZZ_TARGET` names.
nonisolated(unsafe) private var target = FuzzTarget.all[0]

/// Finds the target, and tells libFuzzer of its counters: of those that the files in the folder `HOLDFAST_FUZZ_CORPUS` show, or of all.
/// Without a name, prints the table of all targets: name, longest input, and files. With `HOLDFAST_FUZZ_VERDICTS`, prints the verdicts on
/// each of those files and on its variants.
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
  if let folder = getenv("HOLDFAST_FUZZ_CORPUS").map({ String(cString: $0) }) {
    if getenv("HOLDFAST_FUZZ_VERDICTS") != nil {
      printVerdicts(of: named, onFilesIn: folder)
      exit(0)
    }
    Counters.tell(thoseReachedBy: { forEachFile(in: folder) { _, bytes in try? named.run(bytes) } })
  } else {
    Counters.tellAll()
  }
  return 0
}

/// Prints the verdict on each file, and then, unless only plain ones are asked for, once more with that on its variants. `HOLDFAST_FUZZ_LIMITS` has numbers at which the readers
/// may have a limit, and `HOLDFAST_FUZZ_TAKEN` the number of files that were taken when the verdicts were kept. A rule that does not hold
/// ends the program, as it does while it fuzzes.
private func printVerdicts(of target: FuzzTarget, onFilesIn folder: String) {
  let words = getenv("HOLDFAST_FUZZ_LIMITS").map { String(cString: $0) } ?? ""
  let limits = words.split(separator: " ").compactMap { UInt64($0) }
  var verdicts: [String: String] = [:]
  func judge(_ body: (String, [UInt8]) throws(Violation) -> Void) {
    forEachFile(in: folder) { name, bytes in
      // The name first, so that the last line says where a reader traps.
      print(name, terminator: " ")
      fflush(nil)
      do throws(Violation) { try body(name, bytes) } catch { fatalError("\(target.name): \(error)") }
      print(verdicts[name] ?? "")
    }
  }
  judge { name, bytes throws(Violation) in verdicts[name] = try target.verdict(on: bytes) }
  guard String(cString: getenv("HOLDFAST_FUZZ_VERDICTS")) != "plain" else { return }
  let kept = getenv("HOLDFAST_FUZZ_TAKEN").flatMap { Int(String(cString: $0)) }
  let takenCount = kept ?? verdicts.values.count { $0.hasPrefix("+") }
  judge { name, bytes throws(Violation) in
    verdicts[name]? += " " + (try target.verdictOnVariants(of: bytes, limits: limits, takenCount: takenCount))
  }
}

/// Calls `body` with the name and the contents of each file.
private func forEachFile(in folder: String, _ body: (String, [UInt8]) -> Void) {
  guard let entries = opendir(folder) else { return }
  defer { closedir(entries) }
  while let entry = readdir(entries) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    guard name.first != ".", let file = fopen("\(folder)/\(name)", "r") else { continue }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    body(name, Array(bytes[..<fread(&bytes, 1, bytes.count, file)]))
  }
}

/// The number of inputs so far.
nonisolated(unsafe) private var inputCount = 0

/// Gives the fuzzer's bytes to the target. libFuzzer is told of the comparisons for one of eight inputs.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  comparisons_are_told = inputCount % 8 == 0
  inputCount &+= 1
  do { try target.run(Array(UnsafeBufferPointer(start: data, count: count))) } catch {
    fatalError("\(target.name): \(error)")
  }
  return 0
}
