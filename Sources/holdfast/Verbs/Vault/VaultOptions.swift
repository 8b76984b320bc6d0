import ArgumentParser
import HoldfastOpenSSL
import HoldfastVault

/// The option for the place of a vault.
struct VaultOptions: ParsableArguments {
  @Option(help: "The vault's folder.", completion: .directory)
  var vault: String

  /// Runs a step on the vault and converts its fault to a failure.
  func using<Result: ~Copyable>(_ body: (Vault) throws(VaultFault) -> Result) throws(Failure) -> Result {
    do throws(VaultFault) { return try body(Vault(path: vault)) } catch { throw Failure(error, vault: vault) }
  }
}

/// The options that unlock a vault.
struct VaultUnlocking: ParsableArguments {
  @Option(
    help: "A file with the passcode, or - for a line of standard input. By default, the command prompts for it.",
    completion: .file())
  var passcodeFile: String?

  @Option(help: "The file with the key that unlocks the vault instead of the passcode.", completion: .file())
  var keyFile: String?

  @Option(
    help:
      "The socket of an agent, which is asked for the vault's key first, and holds it once the vault was unlocked in another way.",
    completion: .file())
  var agent: String?

  /// Checks the options, before anything is read.
  func check(hasInput: Bool = false) throws(Failure) {
    guard passcodeFile == nil || keyFile == nil else {
      throw Failure(.usage, "--passcode-file and --key-file cannot be combined")
    }
    guard !hasInput || passcodeFile != "-" else {
      throw Failure(.usage, "standard input cannot be both the passcode and the data", hint: "add --in FILE")
    }
  }

  /// Unlocks the vault with the agent's key, the key file or the passcode.
  func unlock(_ options: VaultOptions, restoring: Bool = false) throws(Failure) -> UnlockedVault {
    if keyFile == nil, !restoring, let held = try unlockWithAgent(options) { return held }
    let unlocked = try unlockWithSecret(options, restoring: restoring)
    try hold(unlocked, options)
    return unlocked
  }

  private func unlockWithSecret(_ options: VaultOptions, restoring: Bool) throws(Failure) -> UnlockedVault {
    if let keyFile {
      return try options.using { vault throws(VaultFault) in
        try restoring ? vault.restore(keyFile: keyFile) : vault.unlock(keyFile: keyFile)
      }
    }
    let passcode = try Passcode(file: passcodeFile, of: "--passcode-file", question: "passcode", options)
    return try options.using { vault throws(VaultFault) in
      try restoring ? vault.restore(passcode: passcode) : vault.unlock(passcode: passcode)
    }
  }

  private func unlockWithAgent(_ options: VaultOptions) throws(Failure) -> UnlockedVault? {
    guard let agent else { return nil }
    let name = try options.heldName()
    let held: SecretBytes?
    do throws(AgentFault) { held = try AgentClient(path: agent).secret(name) } catch {
      throw Failure(error, agent: agent)
    }
    guard let held else { return nil }
    return try options.using { vault throws(VaultFault) in try vault.unlock(heldKey: SecretBytes(copying: held.bytes)) }
  }

  /// Has the agent hold the key, so that the next program needs no passcode.
  private func hold(_ unlocked: borrowing UnlockedVault, _ options: VaultOptions) throws(Failure) {
    guard let agent else { return }
    let name = try options.heldName()
    let key = unlocked.copiedKey()
    do throws(AgentFault) { try AgentClient(path: agent).hold(key, as: name) } catch {
      throw Failure(error, agent: agent)
    }
  }
}

/// A passcode that its user chooses.
enum NewPasscode {
  /// Reads a new passcode, or asks for it twice.
  static func read(file: String?, of option: String, _ options: VaultOptions) throws(Failure) -> Passcode {
    guard file == nil else { return try Passcode(file: file, of: option, question: "new passcode", options) }
    let passcode = try Passcode(file: nil, of: option, question: "new passcode", options)
    let again = try Passcode(file: nil, of: option, question: "new passcode again", options)
    guard passcode.isSame(as: again) else {
      throw Failure(.malformed, "the two passcodes differ", hint: "type the same one twice")
    }
    return passcode
  }
}

extension Passcode {
  /// Reads a passcode or asks for it.
  fileprivate init(
    file: String?, of option: String, question: String, _ options: VaultOptions
  ) throws(Failure) {
    let bytes: SecretBytes
    if let file {
      guard !file.isCode else {
        throw Failure(
          secretGivenTo: option,
          hint: "give it a file, or - for standard input; without it, the command prompts for the secret")
      }
      bytes = try SecretInput.nextLine(file, of: option, limit: 1024)
    } else {
      bytes = try SecretPrompt.ask(question, option: option)
    }
    do throws(VaultFault) { try self.init(bytes.bytes) } catch { throw Failure(error, vault: options.vault) }
  }
}
