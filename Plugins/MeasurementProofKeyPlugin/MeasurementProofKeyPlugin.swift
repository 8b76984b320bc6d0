import Foundation
import PackagePlugin

/// A build plugin that builds the keys of the releases in `mpk.key`, in shares, into the target that uses it.
///
/// The key file is the first of these that exists: the file that `HOLDFAST_MPK_KEY` names, `mpk.key` at the root of the package
/// that is being built, `mpk.key` in Holdfast's own folder. Without a key file, the development key is built in.
///
/// The build system calls a plugin again only when sources or the manifest change. The folders of absent key files are inputs,
/// so that the tool runs when a key file appears or disappears. It then fails instead of building in other keys.
@main
struct MeasurementProofKeyPlugin: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: Target) async throws -> [Command] {
    let output = context.pluginWorkDirectoryURL.appending(path: "GeneratedKeys.swift")
    let candidates = try Self.candidates(context)
    let chosen = candidates.firstIndex { FileManager.default.fileExists(atPath: $0.path) }
    let absent = candidates[..<(chosen ?? candidates.endIndex)]
    let keyFile = chosen.map { candidates[$0] }
    if let keyFile {
      Diagnostics.remark("Holdfast builds in the keys of \(keyFile.path)")
    } else {
      Diagnostics.warning(
        "Holdfast builds in its development key, which is public. To use your own key, write 32 random "
          + "hexadecimal digits to \(candidates[0].path)")
    }
    return [
      .buildCommand(
        displayName: "Building in the keys of \(keyFile.map(Self.name) ?? "development")",
        executable: try context.tool(named: "MeasurementProofKeyTool").url,
        arguments: [output.path, keyFile?.path ?? "development"] + absent.map(\.path),
        inputFiles: (keyFile.map { [$0] } ?? []) + absent.map { $0.deletingLastPathComponent() },
        outputFiles: [output])
    ]
  }

  /// Returns the name of a key file and of its folder. SwiftPM shows only the part of a step's name after the last slash, and
  /// shows remarks only with `--verbose`.
  private static func name(_ keyFile: URL) -> String {
    "\(keyFile.lastPathComponent) in \(keyFile.deletingLastPathComponent().lastPathComponent)"
  }

  /// Returns the possible paths of the key file, the one with the highest priority first.
  private static func candidates(_ context: PluginContext) throws -> [URL] {
    if let named = ProcessInfo.processInfo.environment["HOLDFAST_MPK_KEY"] {
      guard named.hasPrefix("/"), FileManager.default.fileExists(atPath: named) else {
        throw KeyFileNotThere(path: named)
      }
      return [URL(filePath: named)]
    }
    let own = context.package.directoryURL
    let roots = [rootPackage(above: context.pluginWorkDirectoryURL), own].compactMap { $0?.standardizedFileURL }
    let folders = roots.count == 2 && roots[0].path == roots[1].path ? [roots[0]] : roots
    return folders.map { $0.appending(path: "mpk.key") }
  }

  /// Returns the package that is being built: the nearest folder with a manifest above the plugin's work folder in `.build`.
  private static func rootPackage(above workDirectory: URL) -> URL? {
    var folder = workDirectory.standardizedFileURL
    while folder.path != "/" {
      folder.deleteLastPathComponent()
      if FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path) { return folder }
    }
    return nil
  }
}

/// The error that `HOLDFAST_MPK_KEY` is not the absolute path of an existing file. No other key is built in instead.
private struct KeyFileNotThere: Error, CustomStringConvertible {
  let path: String
  var description: String { "HOLDFAST_MPK_KEY must be the absolute path of an existing key file: \(path)" }
}
