import ArgumentParser
import Glibc
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver
import HoldfastVault

struct Wipe: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Remove everything that a prover keeps: its enrolments, its vaults and, if wished, this host's secret.",
    discussion: """
      What a vault has encrypted can never be read again. A vault in the folder vault of the state folder is wiped with it. \
      Files that are not a prover's stay. The command asks first. If it is interrupted, run it again.
      """,
    examples: [
      "holdfast wipe --state phone",
      "holdfast wipe --vault vault --yes",
      "holdfast wipe --state phone --host-secret --yes",
    ])

  @Option(help: "The prover's state folder.", completion: .directory)
  var state: String?

  @Option(help: "The folder of a vault.", completion: .directory)
  var vault: String?

  @Flag(help: "Also remove device.secret: every enrolment and vault of this user on this host becomes useless.")
  var hostSecret = false

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard state != nil || vault != nil || hostSecret else {
      throw Failure(.usage, "nothing was named that should be wiped", hint: "use --state, --vault or --host-secret")
    }
    let vaults = try vaultsToWipe()
    if let state {
      if unsafe access(state, F_OK) == 0 {
        let folder = ProverFolder(path: state)
        try reading(folder) { () throws(StateFolderFault) in try folder.requireExistence() }
      } else if vault == nil, !hostSecret {
        throw Failure(.malformed, "there is no state folder \(state)", hint: "is the name right?")
      }
    }
    if !yes { try Confirmation.ask("this cannot be undone", word: "wipe") }
    // The keys go first. A failure does not keep the rest, and what an earlier run has removed is no failure.
    var failure: Failure?
    var vaultCount = 0
    for path in vaults {
      do throws(VaultFault) {
        try Vault(path: path).wipe()
        vaultCount += 1
      } catch {
        guard error == .missing, vaults.count > 1 || state != nil || hostSecret else {
          failure = failure ?? Failure(error, vault: path)
          continue
        }
        Console.warning("there is no vault in \(path); it may have been wiped before", .nothingToWipe)
      }
    }
    var removed: ProverFolder.Removed?
    if let state, unsafe access(state, F_OK) == 0 {
      let folder = ProverFolder(path: state)
      do throws(Failure) {
        removed = try reading(folder) { () throws(StateFolderFault) in try folder.removeAll() }
      } catch { failure = failure ?? error }
    } else if let state {
      Console.warning("there is no state folder \(state); it may have been removed before", .nothingToWipe)
    }
    var isSecretRemoved = false
    if hostSecret {
      do throws(Failure) { isSecretRemoved = try removeHostSecret() } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
    report(removed, vaultCount: vaultCount, isSecretRemoved: isSecretRemoved)
  }

  /// Returns the vaults that exist, the named one and the one in the state folder.
  private func vaultsToWipe() throws(Failure) -> [String] {
    var paths: [String] = []
    if let vault { paths.append(vault) }
    if let state, vault != "\(state)/vault" {
      do throws(FileError) {
        if try FolderKind.kind(ofFolder: "\(state)/vault") == .vault { paths.append("\(state)/vault") }
      } catch { throw Failure(error) }
    }
    return paths
  }

  /// Removes the secret of this host. Returns whether there was one.
  private func removeHostSecret() throws(Failure) -> Bool {
    guard let path = HostSecretPlace.path else { throw Failure(HostSecretFault.noLocation) }
    do throws(FileError) { try Files.eraseFile(at: path) } catch {
      guard error.kind == .notFound else { throw Failure(error) }
      Console.warning("there is no \(path); it may have been removed before", .nothingToWipe)
      return false
    }
    return true
  }

  private func report(_ removed: ProverFolder.Removed?, vaultCount: Int, isSecretRemoved: Bool) {
    let (count, names) = (removed?.enrolmentCount ?? 0, removed?.otherNames ?? [])
    if output.json {
      Console.result(
        .object([
          ("enrolments", .integer(UInt64(count))), ("vaults", .integer(UInt64(vaultCount))),
          ("host_secret", .bool(isSecretRemoved)), ("left", .array(names.map { .string($0) })),
        ]))
      return
    }
    if state != nil { Console.result("enrolments removed: \(count)") }
    if vaultCount > 0 { Console.result("vaults wiped: \(vaultCount)") }
    if isSecretRemoved { Console.result("this host's secret is removed") }
    if let state, !names.isEmpty {
      Console.warning("\(state) has other files, which stay: \(names.joined(separator: ", "))", .otherFilesStay)
    }
  }
}
