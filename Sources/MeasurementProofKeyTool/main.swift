import Glibc
import HoldfastCore

/// Usage: MeasurementProofKeyTool OUTPUT [KEY-FILE]

func fail(_ message: String) -> Never {
  let text = "error: \(message)\n"
  _ = unsafe write(STDERR_FILENO, text, text.utf8.count)
  exit(1)
}

func load(_ path: String) -> [UInt8] {
  guard let file = unsafe fopen(path, "r") else { fail("mpk.key cannot be read") }
  defer { unsafe fclose(file) }
  var text = [UInt8](repeating: 0, count: 1 << 16)
  let count = unsafe text.withUnsafeMutableBytes { unsafe fread($0.baseAddress, 1, $0.count, file) }
  guard unsafe ferror(file) == 0, count < text.count else { fail("mpk.key cannot be read, or is too long") }
  return Array(text[..<count])
}

func save(_ text: String, _ path: String) {
  let bytes = Array(text.utf8)
  guard let file = unsafe fopen(path, "w") else { fail("the generated source cannot be written") }
  let count = unsafe bytes.withUnsafeBytes { unsafe fwrite($0.baseAddress, 1, $0.count, file) }
  guard unsafe fclose(file) == 0, count == bytes.count else { fail("the generated source cannot be written") }
}

func keys(_ path: String?) -> KeyFile {
  do {
    guard let path else { return try KeyFile() }
    return try KeyFile(parsing: load(path))
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
guard arguments.count == 2 || arguments.count == 3 else { fail("usage: MeasurementProofKeyTool OUTPUT [KEY-FILE]") }
do {
  save(try GeneratedSource(keys(arguments.count == 3 ? arguments[2] : nil)).text, arguments[1])
} catch {
  fail("SHA-256 is not to be had")
}
