import Foundation
import PackagePlugin

/// A build plugin that gives a target the value `ProofKeys.app`: the keys of the releases in `mpk.key`, in shares.
///
/// The key file is the one that `HOLDFAST_MPK_KEY` names by its absolute path, otherwise `mpk.key` at the root of the target's
/// package. Without it the build fails, unless the target's folder has a file `allow-default-proof-key`: `ProofKeys.app` is then
/// the default key, which everybody knows.
///
/// The build system calls a plugin again only when sources or the manifest change. The folder of an absent key file is an input,
/// so that the tool runs when the key file appears. It then fails instead of building in the default key.
@main
struct HoldfastProofKeys: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: Target) async throws -> [Command] {
    let keyFile = try Self.keyFile(context)
    let permission = target.directoryURL.appending(path: "allow-default-proof-key")
    let tool = try context.tool(named: "ProofKeysTool").url
    let output = context.pluginWorkDirectoryURL.appending(path: "ProofKeys+App.swift")
    if FileManager.default.fileExists(atPath: keyFile.path) {
      Diagnostics.remark("\(target.name) has the keys of \(keyFile.path)")
      return [
        .buildCommand(
          displayName: "Building in the keys of \(Self.name(keyFile))", executable: tool,
          arguments: [output.path, keyFile.path], inputFiles: [keyFile], outputFiles: [output])
      ]
    }
    guard FileManager.default.fileExists(atPath: permission.path) else {
      throw KeyFileMissing(target: target.name, path: keyFile.path)
    }
    Diagnostics.warning(
      "\(target.name) has Holdfast's default key, which everybody knows. To use a key of your own: "
        + KeyFileMissing.command(keyFile.path))
    return [
      .buildCommand(
        displayName: "Building in the default key", executable: tool,
        arguments: [output.path, "default", keyFile.path],
        inputFiles: [permission, keyFile.deletingLastPathComponent()], outputFiles: [output])
    ]
  }

  /// Returns the name of a key file and of its folder. SwiftPM shows only the part of a step's name after the last slash, and
  /// shows remarks only with `--verbose`.
  private static func name(_ keyFile: URL) -> String {
    "\(keyFile.lastPathComponent) in \(keyFile.deletingLastPathComponent().lastPathComponent)"
  }

  /// Returns the path of the key file, which may be absent only at the root of the package.
  private static func keyFile(_ context: PluginContext) throws -> URL {
    guard let named = ProcessInfo.processInfo.environment["HOLDFAST_MPK_KEY"] else {
      return context.package.directoryURL.standardizedFileURL.appending(path: "mpk.key")
    }
    guard named.hasPrefix("/"), FileManager.default.fileExists(atPath: named) else {
      throw NamedKeyFileMissing(path: named)
    }
    return URL(filePath: named)
  }
}

/// The error that a target has no key file.
private struct KeyFileMissing: Error, CustomStringConvertible {
  let target: String
  let path: String

  var description: String {
    "\(target) has no key of its own: \(path) does not exist. Create it once, and keep it secret: \(Self.command(path)). "
      + "To try things out with the default key, which everybody knows and which protects nothing, create an empty file "
      + "allow-default-proof-key in the target's folder instead"
  }

  /// Returns the command that writes a root to a key file that only its owner can read.
  static func command(_ path: String) -> String { "(umask 077; openssl rand -hex 16 > '\(path)')" }
}

/// The error that `HOLDFAST_MPK_KEY` is not the absolute path of an existing file. No other key is built in instead.
private struct NamedKeyFileMissing: Error, CustomStringConvertible {
  let path: String
  var description: String { "HOLDFAST_MPK_KEY must be the absolute path of an existing key file: \(path)" }
}
