import Glibc
import HoldfastCore

/// Usage: MeasurementProofKeyTool keys|development KEY-FILE OUTPUT
///
/// `development` builds the development key in, and refuses when KEY-FILE is there: the build was planned without it.
/// OUTPUT is left alone when it would stay the same.

func fail(_ message: String) -> Never {
  let text = "error: \(message)\n"
  _ = unsafe write(STDERR_FILENO, text, text.utf8.count)
  exit(1)
}

/// The bytes of a file; nil when there is none.
func load(_ path: String) -> [UInt8]? {
  guard let file = unsafe fopen(path, "r") else {
    guard errno == ENOENT else { fail("mpk.key cannot be read") }
    return nil
  }
  defer { unsafe fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 1 << 20)
  let count = unsafe bytes.withUnsafeMutableBytes { unsafe fread($0.baseAddress, 1, $0.count, file) }
  guard unsafe ferror(file) == 0, count < bytes.count else { fail("mpk.key cannot be read, or is too long") }
  return Array(bytes[..<count])
}

func save(_ text: String, _ path: String) {
  let bytes = Array(text.utf8)
  if load(path) == bytes { return }
  guard let file = unsafe fopen(path, "w") else { fail("the generated source cannot be written") }
  let count = unsafe bytes.withUnsafeBytes { unsafe fwrite($0.baseAddress, 1, $0.count, file) }
  guard unsafe fclose(file) == 0, count == bytes.count else { fail("the generated source cannot be written") }
}

func developmentKey(unlessThereIs path: String) throws -> KeyFile {
  guard load(path) == nil else { fail("mpk.key is new: touch Package.swift, and build again") }
  return try KeyFile()
}

func keys(_ path: String) throws -> KeyFile {
  guard let text = load(path) else { fail("mpk.key is gone: touch Package.swift, and build again") }
  return try KeyFile(parsing: text)
}

func run(_ mode: String, _ keyFile: String, _ output: String) {
  do {
    switch mode {
    case "keys": save(try GeneratedSource(keys(keyFile)).text, output)
    case "development": save(try GeneratedSource(developmentKey(unlessThereIs: keyFile)).text, output)
    default: fail("the first argument is keys or development")
    }
  } catch KeyFileFault.notAKey(let line) {
    fail("mpk.key:\(line): a key is 32 hexadecimal digits")
  } catch KeyFileFault.repeated(let line) {
    fail("mpk.key:\(line): this key is there already")
  } catch KeyFileFault.noKey {
    fail("mpk.key has no key")
  } catch {
    fail("SHA-256 is not to be had")
  }
}

let arguments = CommandLine.arguments
guard arguments.count == 4 else { fail("usage: MeasurementProofKeyTool keys|development KEY-FILE OUTPUT") }
run(arguments[1], arguments[2], arguments[3])
