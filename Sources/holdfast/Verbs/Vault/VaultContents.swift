import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastVault

/// The options for data that a vault encrypts or decrypts.
struct VaultContents: ParsableArguments {
  @Option(name: .customLong("in"), help: "The file to read, or - for standard input.", completion: .file())
  var input = "-"

  @Option(help: "The file to write, which must not exist, or - for standard output.", completion: .file())
  var out = "-"

  @Option(help: "What the data is; decrypting requires the same text.")
  var context = ""

  /// Opens the input and the output, and hands both to `body`. A file gets its name once everything is in it and on the disk.
  ///
  /// - Returns: The number of bytes that were written.
  func pass(
    _ options: VaultOptions, json: Bool,
    _ body: (_ input: Int32, _ write: (Span<UInt8>) throws(VaultFault) -> Void) throws(VaultFault) -> Void
  ) throws(Failure) -> UInt64 {
    guard !json || out != "-" else { throw Failure(.usage, "--json requires --out FILE") }
    let source: Descriptor
    do throws(SystemError) {
      source =
        try input == "-" ? Descriptor(sameAs: STDIN_FILENO) : Descriptor(opening: input, flags: O_RDONLY | O_NOCTTY)
    } catch { throw Failure(FileError(error, at: SecretInput.name(input))) }
    var count: UInt64 = 0
    do throws(VaultFault) {
      if out == "-" {
        let target = try Self.system(VaultFault.output) { () throws(SystemError) in
          try Descriptor(sameAs: STDOUT_FILENO)
        }
        try body(source.number) { (bytes) throws(VaultFault) in
          try Self.system(VaultFault.output) { () throws(SystemError) in try target.write(bytes) }
          count += UInt64(bytes.count)
        }
      } else {
        count = try writeFile(source.number, body)
      }
    } catch {
      if case .file(let fault) = error, fault.path == out { throw Failure(making: fault) }
      throw Failure(error, vault: options.vault)
    }
    return count
  }

  private func writeFile(
    _ source: Int32,
    _ body: (_ input: Int32, _ write: (Span<UInt8>) throws(VaultFault) -> Void) throws(VaultFault) -> Void
  ) throws(VaultFault) -> UInt64 {
    // Also checked at the end, but a long encryption should not be in vain.
    guard unsafe access(out, F_OK) != 0 else { throw .file(FileError(.exists, at: out)) }
    var count: UInt64 = 0
    var file: UnfinishedFile
    do throws(FileError) { file = try UnfinishedFile(at: out) } catch { throw .file(error) }
    try body(source) { (bytes) throws(VaultFault) in
      do throws(FileError) { try file.append(bytes) } catch { throw .file(error) }
      count += UInt64(bytes.count)
    }
    do throws(FileError) { try file.finish() } catch { throw .file(error) }
    return count
  }

  private static func system<Result: ~Copyable>(
    _ fault: (Int32) -> VaultFault, _ body: () throws(SystemError) -> Result
  ) throws(VaultFault) -> Result {
    do throws(SystemError) { return try body() } catch { throw fault(error.number) }
  }
}

struct VaultEncrypt: Verb {
  static let configuration = CommandConfiguration(
    commandName: "encrypt", abstract: "Encrypt data with a vault.",
    examples: [
      "holdfast vault encrypt --vault vault --in notes.txt --out notes.sealed",
      "holdfast vault encrypt --vault vault --agent agent.sock > notes.sealed",
    ])

  @OptionGroup var options: VaultOptions
  @OptionGroup var unlocking: VaultUnlocking
  @OptionGroup var contents: VaultContents
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    try unlocking.check(hasInput: contents.input == "-")
    let unlocked = try unlocking.unlock(options)
    let context = contents.context
    let count = try contents.pass(options, json: output.json) { (input, write) throws(VaultFault) in
      try unlocked.encrypt(from: input, context: context, writing: write)
    }
    if output.json { Console.result(.object([("file", .string(contents.out)), ("bytes", .integer(count))])) }
  }
}

struct VaultDecrypt: Verb {
  static let configuration = CommandConfiguration(
    commandName: "decrypt", abstract: "Decrypt what a vault has encrypted.",
    discussion: """
      Nothing is written before it was authenticated. A file gets its name once all of it was. Standard output receives whole \
      chunks of 64 KiB; if the input was cut or changed after some of them, the command ends with exit status 2, and what was \
      written must not be used.
      """,
    examples: [
      "holdfast vault decrypt --vault vault --in notes.sealed --out notes.txt",
      "holdfast vault decrypt --vault vault --in notes.sealed > notes.txt",
    ])

  @OptionGroup var options: VaultOptions
  @OptionGroup var unlocking: VaultUnlocking
  @OptionGroup var contents: VaultContents
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    try unlocking.check(hasInput: contents.input == "-")
    let unlocked = try unlocking.unlock(options)
    let context = contents.context
    let count = try contents.pass(options, json: output.json) { (input, write) throws(VaultFault) in
      try unlocked.decrypt(from: input, context: context, writing: write)
    }
    if output.json { Console.result(.object([("file", .string(contents.out)), ("bytes", .integer(count))])) }
  }
}
