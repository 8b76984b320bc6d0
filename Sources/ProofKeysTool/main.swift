import Glibc
import HoldfastFormats

// Usage: ProofKeysTool OUTPUT KEY-FILE
//        ProofKeysTool OUTPUT default ABSENT-FILE
//
// Writes the Swift source of `ProofKeys.app`: the keys of KEY-FILE, or the default key. Fails if KEY-FILE does not exist or
// ABSENT-FILE exists: the build was planned with other files, and must be planned again. OUTPUT is not written if its content
// would not change.

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

/// Writes a file that only this user can read.
func save(_ text: String, _ path: String) {
  let bytes = Array(text.utf8)
  if load(path) == bytes { return }
  umask(0o077)
  guard let file = unsafe fopen(path, "w") else { fail("the generated source cannot be written") }
  let count = unsafe bytes.withUnsafeBytes { unsafe fwrite($0.baseAddress, 1, $0.count, file) }
  guard unsafe fclose(file) == 0, count == bytes.count else { fail("the generated source cannot be written") }
}

func source(_ path: String) -> String {
  guard let text = load(path) else { fail("\(path) does not exist any more: touch Package.swift, and build again") }
  do {
    return try ProofKeySource(ReleaseRoots(parsing: text.span)).swift
  } catch let fault as KeyFileFault {
    fail("\(path)\(fault.line.map { ":\($0)" } ?? ""): \(fault.text)")
  } catch {
    fail("the cryptographic library failed")
  }
}

let arguments = CommandLine.arguments
switch (arguments.count, arguments.dropFirst(2).first) {
case (4, "default"):
  if load(arguments[3]) != nil { fail("\(arguments[3]) is new: touch Package.swift, and build again") }
  save(ProofKeySource.defaultSwift, arguments[1])
case (3, let path?): save(source(path), arguments[1])
default: fail("usage: ProofKeysTool OUTPUT KEY-FILE, or OUTPUT default ABSENT-FILE")
}
