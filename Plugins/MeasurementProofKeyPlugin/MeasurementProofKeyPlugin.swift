import Foundation
import PackagePlugin

/// Builds the measurement proof keys of `mpk.key`, in shares, into the target that uses it.
@main
struct MeasurementProofKeyPlugin: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: Target) async throws -> [Command] {
    let keyFile = context.package.directoryURL.appending(path: "mpk.key")
    let output = context.pluginWorkDirectoryURL.appending(path: "GeneratedKeys.swift")
    let keyFiles = FileManager.default.fileExists(atPath: keyFile.path) ? [keyFile] : []
    return [
      .buildCommand(
        displayName: "Splitting the measurement proof keys",
        executable: try context.tool(named: "MeasurementProofKeyTool").url,
        arguments: [output.path] + keyFiles.map(\.path),
        inputFiles: keyFiles,
        outputFiles: [output])
    ]
  }
}
