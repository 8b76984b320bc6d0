import Foundation
import PackagePlugin

/// Builds the measurement proof keys of `mpk.key`, in shares, into the target that uses it.
///
/// The build system asks a plugin again only when sources or the manifest change. So that it does not go on with the
/// development key when `mpk.key` has come meanwhile, the package's folder is an input: the tool then runs, and refuses.
@main
struct MeasurementProofKeyPlugin: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: Target) async throws -> [Command] {
    let folder = context.package.directoryURL
    let keyFile = folder.appending(path: "mpk.key")
    let output = context.pluginWorkDirectoryURL.appending(path: "GeneratedKeys.swift")
    let isPresent = FileManager.default.fileExists(atPath: keyFile.path)
    return [
      .buildCommand(
        displayName: "Splitting the measurement proof keys",
        executable: try context.tool(named: "MeasurementProofKeyTool").url,
        arguments: [isPresent ? "keys" : "development", keyFile.path, output.path],
        inputFiles: isPresent ? [keyFile] : [folder],
        outputFiles: [output])
    ]
  }
}
