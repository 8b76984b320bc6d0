import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

/// The folder of one account in the client's state folder. Each file is written in one step and is on the disk before the call
/// that writes it returns. Processes that change a file take turns.
struct AccountFolder: Sendable {
  /// The path of the folder.
  let path: String

  private static let configurationName = "configuration.jwt"
  private static let deviceIDName = "device_id"
  private static let installationKeyName = "installation.key"
  private static let sealingKeyName = "sealing.key"

  /// Creates the client's state folder and the account's folder in it, each with mode 0700, unless they exist.
  ///
  /// - Throws: the errors of `Files.createPrivateDirectory`; `anotherKind` if the state folder is one of Holdfast's other folders.
  init(state: String, account: KeyID) throws(FileError) {
    try Files.createPrivateDirectory(at: state, isBackedUp: false)
    if let kind = try FolderKind.kind(ofFolder: state) { throw FileError(.anotherKind(kind), at: state) }
    try Files.createPrivateDirectory(at: state + "/accounts")
    path = "\(state)/accounts/\(hexadecimal(account))"
    try Files.createPrivateDirectory(at: path)
  }

  /// The path of the prover's state folder.
  var proverPath: String { path + "/prover" }

  /// Returns the path of a file.
  func file(_ name: String) -> String { path + "/" + name }

  /// Runs `body` while no other process does.
  ///
  /// - Throws: `locked` if another process does not end its turn within 10 s.
  func takingTurns<Result>(_ body: () throws(FileError) -> Result) throws(FileError) -> Result {
    try FolderTurns(directory: path).take(orThrow: FileError(.locked, at: path), body)
  }
}

extension AccountFolder {
  /// Returns the stored configuration; nil if there is none that the account signed.
  func configuration(of account: InitialConfiguration) -> AccountConfiguration? {
    let bytes = try? Files.readFile(
      at: file(Self.configurationName), limit: AccountConfiguration.byteLimit, requirements: [.secret, .noSymbolicLink])
    return bytes.flatMap { AccountConfiguration(String(decoding: $0, as: UTF8.self), of: account) }
  }

  /// Stores a configuration unless a stored one has the same revision or a higher one, and returns the newest of both.
  func keep(
    _ configuration: AccountConfiguration, of account: InitialConfiguration
  ) throws(FileError) -> AccountConfiguration {
    try takingTurns { () throws(FileError) in
      if let stored = self.configuration(of: account), stored.revision >= configuration.revision { return stored }
      try Files.writeFileAtomically(Array(configuration.text.utf8), at: file(Self.configurationName), overwrite: true)
      return configuration
    }
  }

  /// The id that the service last gave this host; nil if there is none.
  var deviceID: FixedBytes<16>? {
    guard
      let bytes = try? Files.readFile(
        at: file(Self.deviceIDName), limit: 33, requirements: [.secret, .noSymbolicLink]), bytes.last == 0x0a
    else { return nil }
    return fixedBytes(hexadecimal: String(decoding: bytes.dropLast(), as: UTF8.self))
  }

  /// Stores the id that the service gave this host.
  func keep(deviceID: FixedBytes<16>) throws(FileError) {
    try Files.writeFileAtomically(
      Array((hexadecimal(deviceID) + "\n").utf8), at: file(Self.deviceIDName), overwrite: true)
  }

  /// Returns the private key of this installation, which the first call makes.
  func installationKey() throws -> P256PrivateKey {
    let scalar = try secret(Self.installationKeyName) { () throws(CryptographyFailure) in
      try P256PrivateKey().scalar()
    }
    return try P256PrivateKey(scalar: scalar)
  }

  /// Returns the random key under which files are sealed, which the first call makes.
  func sealingKey() throws -> Secret<32> {
    try secret(Self.sealingKeyName) { () throws(CryptographyFailure) in
      var random = SystemRandom()
      do throws(RandomFailure) { return try random.secret() } catch { throw CryptographyFailure() }
    }
  }

  /// Returns the 32 bytes of a file, which the first of all processes writes.
  private func secret(_ name: String, _ make: () throws(CryptographyFailure) -> Secret<32>) throws -> Secret<32> {
    if let secret = try read(name) { return secret }
    let made = try make()
    do throws(FileError) {
      try made.withBytes { (bytes: Span<UInt8>) throws(FileError) in
        try Files.writeFileAtomically(bytes, at: file(name), overwrite: false)
      }
    } catch {
      // Another process was first.
      guard error.kind == .exists else { throw error }
    }
    guard let secret = try read(name) else { throw FileError(.notFound, at: file(name)) }
    return secret
  }

  private func read(_ name: String) throws(FileError) -> Secret<32>? {
    do throws(FileError) {
      let secret = try Files.readSecretFile(
        at: file(name), limit: 32, requirements: [.secret, .noSymbolicLink], { Secret<32>(copying: $0) })
      guard let secret else { throw FileError(.notRegular, at: file(name)) }
      return secret
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
  }
}
