import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// The rules about the posture, in the file `posture_rules.json` of the state folder, with the key of their issuer. The first
/// installation decides which key that is.
extension ProverFolder {
  package static let postureRulesName = "posture_rules.json"
  private static let postureRulesByteLimit = 8192

  private var postureRulesPath: String { "\(path)/\(Self.postureRulesName)" }

  /// Returns the installed rules; nil if there are none.
  ///
  /// - Throws: `damaged` for a file with other content or a wrong signature, and `file`.
  package func postureRules() throws(StateFolderFault) -> PostureRules? { try installedPosture()?.rules }

  private func installedPosture() throws(StateFolderFault) -> (issuer: PublicKeyJWK, rules: PostureRules)? {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(
        at: postureRulesPath, limit: Self.postureRulesByteLimit, requirements: [.noSymbolicLink, .owned])
    } catch {
      if error.kind == .notFound { return nil }
      throw .file(error)
    }
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.postureRulesByteLimit),
      value.hasOnly(["version", "issuer", "rules"]), value["version"]?.number == 1, let key = value["issuer"],
      let issuer = try? PublicKeyJWK(key), let text = value["rules"]?.text,
      let rules = try? PostureRules(Array(text.utf8), by: issuer.point)
    else { throw .damaged(path: postureRulesPath) }
    return (issuer, rules)
  }

  /// Checks signed rules and installs them durably. The same rules may be installed again.
  ///
  /// - Parameters:
  ///   - text: the rules as the issuer signed them.
  ///   - issuer: the key of the issuer; nil for the one whose rules are installed.
  /// - Returns: the rules; or the reason why they are refused, and then nothing has changed.
  /// - Throws: `damaged`, `busy`, `file`. Damaged rules are never replaced, because their number is not known.
  package func installPostureRules(
    _ text: [UInt8], by issuer: PublicKeyJWK?
  ) throws(StateFolderFault) -> Result<PostureRules, PostureRulesFault> {
    do throws(FileError) {
      try Files.createPrivateDirectory(at: path, isBackedUp: false)
      try FolderKind.prover.require(ofFolder: path)
    } catch { throw .file(error) }
    var outcome = Result<PostureRules, PostureRulesFault>.failure(.malformed)
    try takingTurns(in: path) { () throws(StateFolderFault) in
      let installed = try installedPosture()
      guard let issuer = issuer ?? installed?.issuer else {
        outcome = .failure(.issuerNeeded)
        return
      }
      outcome = Result { () throws(PostureRulesFault) in try PostureRules(text, by: issuer, replacing: installed) }
      guard case .success(let rules) = outcome else { return }
      // Also for the same rules: an earlier call may have failed before they were durable.
      let file = JSONValue.object([
        ("version", .integer(1)), ("issuer", issuer.json),
        ("rules", .string(String(decoding: rules.text, as: UTF8.self))),
      ])
      do throws(FileError) { try Files.writeFileAtomically(file.pretty(), at: postureRulesPath, overwrite: true) } catch
      {
        throw .file(error)
      }
    }
    return outcome
  }
}

extension PostureRules {
  /// Reads rules that are to replace the installed ones: from the same issuer, and with a higher number, or the same rules.
  fileprivate init(
    _ text: [UInt8], by issuer: PublicKeyJWK, replacing installed: (issuer: PublicKeyJWK, rules: PostureRules)?
  ) throws(PostureRulesFault) {
    if let installed, installed.issuer != issuer { throw .anotherKey }
    try self.init(text, by: issuer.point)
    if let installed, self != installed.rules, number <= installed.rules.number {
      throw .notNewer(installed: installed.rules.number)
    }
  }
}
