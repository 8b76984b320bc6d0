import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastVault

struct VaultVerbs: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vault",
    abstract: "Encrypt files under a passcode or a key file, on this host only.",
    discussion: """
      A vault is a folder with a random key. A passcode, a key file or each of them unlocks it, always together with this \
      host's secret. After ten wrong passcodes its key is removed, and with it everything that it encrypted.
      """,
    examples: [
      "holdfast vault init --vault vault --key-file vault-key",
      "holdfast vault encrypt --vault vault --in notes.txt --out notes.sealed",
      "holdfast vault decrypt --vault vault --in notes.sealed > notes.txt",
    ],
    subcommands: [
      VaultInit.self, VaultShow.self, VaultUnlock.self, VaultLock.self, VaultEncrypt.self, VaultDecrypt.self,
      VaultPasswd.self,
    ])
}

struct VaultInit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Create a vault.",
    discussion: """
      A key file has 32 random bytes, and is created if it does not exist. Keep it in another place: it restores the counter \
      of attempts. If the command is interrupted, run it again. It never overwrites a vault that was not wiped.
      """,
    examples: [
      "holdfast vault init --vault vault",
      "holdfast vault init --vault vault --key-file vault-key --no-passcode",
    ])

  @OptionGroup var options: VaultOptions
  @OptionGroup var output: OutputOptions

  @Option(
    help: "A file with the passcode, or - for a line of standard input. By default, the command prompts for it twice.",
    completion: .file())
  var passcodeFile: String?

  @Flag(help: "Use no passcode, only the key file.")
  var noPasscode = false

  @Option(
    help: "The file with the key that unlocks the vault, too; it is created if it does not exist.", completion: .file())
  var keyFile: String?

  @Option(help: "The number of wrong passcodes after which the vault is wiped, 3 to 100.")
  var attempts = Vault.defaultAttemptLimit

  mutating func perform() throws(Failure) {
    guard !noPasscode || passcodeFile == nil else {
      throw Failure(.usage, "--no-passcode and --passcode-file cannot be combined")
    }
    guard !noPasscode || keyFile != nil else { throw Failure(.usage, "--no-passcode requires --key-file") }
    let passcode: Passcode? =
      noPasscode ? nil : try NewPasscode.read(file: passcodeFile, of: "--passcode-file", options)
    let (keyFile, attempts) = (keyFile, attempts)
    if let keyFile { try options.createIfMissing(keyFile: keyFile) }
    var new = passcode
    _ = try options.using { vault throws(VaultFault) in
      try vault.create(passcode: new.take(), keyFile: keyFile, attemptLimit: attempts)
    }
    try options.show(json: output.json)
  }
}

struct VaultShow: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show how a vault is unlocked, and how many attempts are left.",
    examples: ["holdfast vault show --vault vault --json"])

  @OptionGroup var options: VaultOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) { try options.show(json: output.json) }
}

struct VaultUnlock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Check a passcode or a key file; with --agent, let the agent hold the key.",
    discussion: """
      If the counter of attempts is damaged, or the last attempt was interrupted, passcodes are refused. --reset restores the \
      counter: with the key file at once, with the passcode after ten minutes, for which the command waits.
      """,
    examples: [
      "holdfast vault unlock --vault vault --agent agent.sock",
      "holdfast vault unlock --vault vault --reset --key-file vault-key",
    ])

  @OptionGroup var options: VaultOptions
  @OptionGroup var unlocking: VaultUnlocking
  @OptionGroup var output: OutputOptions

  @Flag(help: "Restore the counter of attempts.")
  var reset = false

  mutating func perform() throws(Failure) {
    try unlocking.check()
    if reset && unlocking.keyFile == nil { Console.note("the passcode is tried after ten minutes") }
    _ = try unlocking.unlock(options, restoring: reset)
    try options.show(json: output.json)
  }
}

struct VaultLock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "Let an agent forget the key of a vault.",
    examples: ["holdfast vault lock --vault vault --agent agent.sock"])

  @OptionGroup var options: VaultOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The socket of the agent.", completion: .file())
  var agent: String

  mutating func perform() throws(Failure) {
    let name = try options.heldName()
    let wasHeld: Bool
    do throws(AgentFault) { wasHeld = try AgentClient(path: agent).forget(name) } catch {
      throw Failure(error, agent: agent)
    }
    if output.json {
      Console.result(.object([("locked", .bool(true)), ("was_held", .bool(wasHeld))]))
    } else {
      Console.result(wasHeld ? "locked" : "locked; the agent did not hold the key")
    }
  }
}

struct VaultPasswd: Verb {
  static let configuration = CommandConfiguration(
    commandName: "passwd", abstract: "Change the passcode or the key file of a vault.",
    discussion: """
      What was encrypted stays readable, because the vault's key stays. The counter of attempts begins anew. Without \
      --new-key-file and --no-key-file, the passcode is changed.
      """,
    examples: [
      "holdfast vault passwd --vault vault",
      "holdfast vault passwd --vault vault --key-file vault-key --attempts 5",
      "holdfast vault passwd --vault vault --new-key-file another-key",
    ])

  @OptionGroup var options: VaultOptions
  @OptionGroup var unlocking: VaultUnlocking
  @OptionGroup var output: OutputOptions

  @Option(
    help:
      "A file with the new passcode, or - for a line of standard input. By default, the command prompts for it twice.",
    completion: .file())
  var newPasscodeFile: String?

  @Flag(help: "Remove the passcode.")
  var noPasscode = false

  @Option(help: "The file with the new key; it is created if it does not exist.", completion: .file())
  var newKeyFile: String?

  @Flag(help: "Remove the key file from the vault; the file itself stays.")
  var noKeyFile = false

  @Option(help: "The number of wrong passcodes after which the vault is wiped, 3 to 100; by default as before.")
  var attempts: Int?

  mutating func perform() throws(Failure) {
    try unlocking.check()
    let isAboutKeyFile = newKeyFile != nil || noKeyFile
    guard
      [newPasscodeFile != nil || attempts != nil, noPasscode, newKeyFile != nil, noKeyFile].count(where: { $0 }) <= 1
    else { throw Failure(.usage, "only one of passcode and key file can be changed at a time") }
    let unlocked = try unlocking.unlock(options)
    if isAboutKeyFile {
      let path = newKeyFile
      if let path { try options.createIfMissing(keyFile: path) }
      try options.using { vault throws(VaultFault) in try vault.setKeyFile(path, of: unlocked) }
    } else {
      var new: Passcode? =
        noPasscode ? nil : try NewPasscode.read(file: newPasscodeFile, of: "--new-passcode-file", options)
      let limit = attempts
      try options.using { vault throws(VaultFault) in
        try vault.setPasscode(new.take(), of: unlocked, attemptLimit: limit)
      }
    }
    try options.show(json: output.json)
  }
}

extension VaultOptions {
  /// Creates a key file unless there is one.
  fileprivate func createIfMissing(keyFile path: String) throws(Failure) {
    guard unsafe access(path, F_OK) != 0 else { return }
    do throws(VaultFault) { try KeyFile.create(at: path) } catch {
      if case .file(let fault) = error { throw Failure(making: fault) }
      throw Failure(error, vault: vault)
    }
  }

  /// The name under which an agent holds the key of this vault.
  func heldName() throws(Failure) -> String { try status().heldName }

  fileprivate func status() throws(Failure) -> Vault.Status {
    try using { vault throws(VaultFault) in try vault.status() }
  }

  /// Prints what can be known about the vault without unlocking it.
  fileprivate func show(json: Bool) throws(Failure) {
    let status = try status()
    if json {
      Console.result(
        .object([
          ("vault", .string(status.idText)), ("passcode", .bool(status.hasPasscode)),
          ("key_file", .bool(status.hasKeyFile)),
          ("attempts", status.attemptLimit.map { .integer(UInt64($0)) } ?? .null),
          ("attempts_left", status.attemptsLeft.map { .integer(UInt64($0)) } ?? .null),
          ("both_copies", .bool(status.hasBothCopies)),
        ]))
      return
    }
    Console.result("vault \(status.idText)")
    if let limit = status.attemptLimit {
      Console.result(
        status.attemptsLeft.map { "  passcode   \($0) of \(limit) attempts left" }
          ?? "  passcode   refused; see vault unlock --reset")
    } else {
      Console.result("  passcode   none")
    }
    Console.result("  key file   \(status.hasKeyFile ? "yes" : "none")")
    if !status.hasBothCopies { Console.result("  copies     one is damaged; the next unlock repairs it") }
  }
}
