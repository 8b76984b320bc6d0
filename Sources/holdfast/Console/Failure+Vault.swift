import Glibc
import HoldfastLinux
import HoldfastVault

extension Failure {
  /// Creates the failure for a vault that could not be created, unlocked, changed or used.
  init(_ fault: VaultFault, vault path: String) {
    let vault = path.shellWord
    switch fault {
    case .noKey: self.init(.usage, "a vault needs a passcode or a key file", hint: "see --key-file and --no-passcode")
    case .attemptLimit: self.init(.usage, "--attempts must be from 3 to 100")
    case .passcodeLength: self.init(.malformed, "a passcode must have 6 to 256 bytes; it was not tried")
    case .keyFileLength(let file): self.init(.malformed, "\(file) is not a key file, which has 32 bytes, or it was cut")
    case .exists:
      self.init(.malformed, "\(path) has a vault already; nothing was overwritten", hint: "use another folder")
    case .missing:
      self.init(.malformed, "\(path) has no vault", hint: "create one: holdfast vault init --vault \(vault)")
    case .incomplete:
      self.init(
        .malformed, "the creation of the vault \(path) was interrupted",
        hint: "it was never used; run holdfast vault init --vault \(vault) again")
    case .damaged:
      self.init(
        .malformed, "neither copy of the key in \(path) is whole, or the vault belongs to another host",
        hint: "restore vault.key or vault.copy from a backup, or device.secret of the host on which it was created")
    case .noPasscode: self.init(.denied, "the vault \(path) has no passcode", hint: "use --key-file FILE")
    case .noKeyFile: self.init(.denied, "the vault \(path) has no key file")
    case .wrongPasscode(let left):
      self.init(
        .denied, "the passcode is wrong",
        hint: "after \(left) more wrong \(left == 1 ? "one" : "ones") the vault is wiped")
    case .wrongKeyFile: self.init(.denied, "the key file is not the one of the vault \(path)")
    case .wrongKey: self.init(.denied, "the key is not the one of the vault \(path)")
    case .attemptsDamaged, .attemptsUsed: self.init(refused: fault, vault)
    case .resetNotNeeded:
      self.init(.usage, "passcodes are accepted, so there is nothing to reset", hint: "run it without --reset")
    case .wiped:
      self.init(
        .denied, "the vault \(path) was wiped: its key no longer exists",
        hint: "to begin anew: holdfast vault init --vault \(vault)")
    case .busy: self.init(.unavailable, "another process is using the vault \(path)", hint: "try again")
    case .copyNotWritten(let error):
      let cause = Failure(error)
      self.init(.fault, "the change is made, but its second copy is not: \(cause.message)", hint: "make it again")
    case .file(let error): self.init(error)
    case .hostSecret(.missing):
      self.init(
        .malformed, "this host's secret, device.secret, is missing",
        hint: "restore it, because vaults of this host cannot be unlocked without it")
    case .hostSecret(let fault): self.init(fault)
    case .cryptography: self.init(.fault, "the cryptographic library or the random source failed")
    case .notEncrypted, .otherVault, .contentsDamaged, .input, .output: self.init(contents: fault, path)
    }
  }

  private init(refused fault: VaultFault, _ vault: String) {
    self.init(
      .denied,
      fault == .attemptsUsed
        ? "the last attempt was interrupted, so passcodes are refused"
        : "the counter of attempts is missing or damaged, so passcodes are refused",
      hint: "with the key file: holdfast vault unlock --vault \(vault) --reset --key-file FILE; "
        + "with the passcode, after ten minutes: holdfast vault unlock --vault \(vault) --reset")
  }

  private init(contents fault: VaultFault, _ path: String) {
    switch fault {
    case .otherVault: self.init(.malformed, "the input was encrypted by another vault than \(path)")
    case .contentsDamaged:
      self.init(
        .malformed, "the input was cut, extended or changed, or has another context",
        hint: "no file was written; do not use what standard output has received, because its end is missing")
    case .input(let number):
      self.init(.malformed, "the input cannot be read: \(unsafe String(cString: strerror(number)))")
    case .output(let number): self = Failure(lostResult: number) ?? Failure(.fault, "the output could not be written")
    default: self.init(.malformed, "the input is not what a vault has encrypted, or was cut in its first 96 bytes")
    }
  }

  /// Creates the failure for an agent that did not do what it was asked.
  init(_ fault: AgentFault, agent path: String) {
    switch fault {
    case .connection(ENOENT), .connection(ECONNREFUSED):
      self.init(
        .unavailable, "no agent listens at \(path)", hint: "start one: holdfast agent --socket \(path.shellWord)")
    case .connection(EACCES), .connection(EPERM):
      self.init(.noPermission, "the agent at \(path) belongs to another user")
    case .connection(ENAMETOOLONG): self.init(.usage, "\(path) is too long for a socket's name")
    case .connection(let number):
      self.init(.unavailable, "the agent at \(path) does not answer: \(unsafe String(cString: strerror(number)))")
    case .unknownName: self.init(.denied, "the agent holds nothing of this name")
    case .full: self.init(.unavailable, "the agent holds as many secrets as it can", hint: "forget one: --forget NAME")
    case .malformed:
      self.init(
        .usage, "a name must have 1 to 64 printable ASCII characters without spaces, and a secret 1 to 1024 bytes")
    }
  }
}
