import Glibc
import HoldfastFormats

// Usage: MeasurementProofKeyTool OUTPUT KEY-FILE|development [ABSENT-FILE …]
//
// Builds in the keys of KEY-FILE, or the development key. Fails if KEY-FILE does not exist or an ABSENT-FILE exists: the build
// was planned with other files, and must be planned again. OUTPUT is not written if its content would not change.

func fail(_ message: String) -> Never {
  let text = "error: \(message)\n"
  _ = unsafe write(STDERR_FILENO, text, text.utf8.count)
  exit(1)
}

/// Returns the bytes of a file; nil if it does not exist.
func load(_ path: String) -> [UInt8]? {
  guard let file = unsafe fopen(path, "r") else {
    guard errno == ENOENT else { fail("\(path) cannot be read") }
    return nil
  }
  defer { unsafe fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 1 << 20)
  let count = unsafe bytes.withUnsafeMutableBytes { unsafe fread($0.baseAddress, 1, $0.count, file) }
  guard unsafe ferror(file) == 0, count < bytes.count else { fail("\(path) cannot be read, or is too long") }
  return Array(bytes[..<count])
}

func save(_ text: String, _ path: String) {
  let bytes = Array(text.utf8)
  if load(path) == bytes { return }
  guard let file = unsafe fopen(path, "w") else { fail("the generated source cannot be written") }
  let count = unsafe bytes.withUnsafeBytes { unsafe fwrite($0.baseAddress, 1, $0.count, file) }
  guard unsafe fclose(file) == 0, count == bytes.count else { fail("the generated source cannot be written") }
}

func roots(_ path: String) throws -> ReleaseRoots {
  guard path != "development" else { return try ReleaseRoots.development() }
  guard let text = load(path) else { fail("\(path) does not exist any more: touch Package.swift, and build again") }
  return try ReleaseRoots(parsing: text.span)
}

func run(_ output: String, _ path: String, absent: [String]) {
  for path in absent where load(path) != nil { fail("\(path) is new: touch Package.swift, and build again") }
  do {
    save(try GeneratedSource(roots(path)).text, output)
  } catch KeyFileFault.notAKey(let line) {
    fail("\(path):\(line): a key is 32 hexadecimal digits")
  } catch KeyFileFault.repeated(let line) {
    fail("\(path):\(line): this key is there already")
  } catch KeyFileFault.noKey {
    fail("\(path) has no key")
  } catch KeyFileFault.tooMany {
    fail("\(path) has more than \(ReleaseRoots.maximumCount) keys")
  } catch {
    fail("the cryptographic library failed")
  }
}

let arguments = CommandLine.arguments
guard arguments.count >= 3 else { fail("usage: MeasurementProofKeyTool OUTPUT KEY-FILE|development [ABSENT-FILE …]") }
run(arguments[1], arguments[2], absent: Array(arguments[3...]))
