import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

struct ProofKeyFiles: Verb {
  static let configuration = CommandConfiguration(
    commandName: "proof-keys",
    abstract: "Create the key file of an app, or write its keys as C source for an app in C.",
    discussion: """
      A key file has one root of 32 hexadecimal digits for each release, the newest first. The C source defines hf_proof_keys, \
      with the keys in shares. File and source are secret: anyone who reads one of them can pretend to be the app.
      """,
    examples: [
      "holdfast proof-keys --new mpk.key",
      "holdfast proof-keys --c mpk.key > proof_keys.c",
    ])

  @Option(help: "Create this key file, with one random root. It must not exist.", completion: .file())
  var new: String?

  @Option(help: "Write the keys of this key file as C source to standard output.", completion: .file())
  var c: String?

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    switch (new, c) {
    case (let path?, nil): try create(path)
    case (nil, let path?): try writeSource(path)
    default: throw Failure(.usage, "give either --new or --c, with a key file")
    }
  }

  private func create(_ path: String) throws(Failure) {
    guard path != "-" else {
      throw Failure(.usage, "the root is secret and is not displayed", hint: "name a file for it")
    }
    var random = SystemRandom()
    let root: ReleaseRoot
    do throws(RandomFailure) { root = try random.secret() } catch { throw Failure(.fault, "the random source failed") }
    var text = ByteBuffer<64>()
    do throws(EncodingFault) {
      try root.withBytes { (bytes) throws(EncodingFault) in
        for index in bytes.indices {
          try text.append(hexadecimalDigit(bytes[index] >> 4))
          try text.append(hexadecimalDigit(bytes[index] & 0x0f))
        }
      }
      try text.append(UInt8(ascii: "\n"))
    } catch { throw Failure(.fault, "the key could not be written") }
    do throws(FileError) { try Files.writeFileAtomically(text.bytes, at: path, overwrite: false) } catch {
      throw Failure(making: error)
    }
    if output.json {
      Console.result(.object([("file", .string(path))]))
    } else {
      Console.result("a root for the next release in \(path)")
    }
  }

  private func writeSource(_ path: String) throws(Failure) {
    let source: String
    let roots = try ReleaseRoots(file: path)
    do throws(CryptographyFailure) { source = try ProofKeySource(roots).c } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
    if output.json {
      Console.result(.object([("c", .string(source))]))
    } else {
      let lines = Array(source.utf8)
      Console.result(lines: lines.span)
    }
  }
}

/// Returns the lower-case digit of a value below 16. Timing: independent of the value.
private func hexadecimalDigit(_ value: UInt8) -> UInt8 {
  let isLetter = (9 &- value) >> 7
  return 0x30 &+ value &+ isLetter &* 0x27
}

extension ReleaseRoots {
  /// Reads the roots in a key file, which must belong to this user and be inaccessible to others.
  init(file path: String) throws(Failure) {
    let text: SecretBytes
    do throws(FileError) {
      text = try Files.readSecretFile(at: path, limit: Self.maximumByteCount) { SecretBytes(copying: $0) }
    } catch { throw Failure(error) }
    do throws(KeyFileFault) { try self.init(parsing: text.bytes) } catch {
      throw Failure(.malformed, "\(path)\(error.line.map { ", line \($0)" } ?? ""): \(error.text)")
    }
  }
}
