import Foundation
import PackagePlugin

/// A build plugin that writes the version, which `holdfast --version` prints, into the target that uses it.
///
/// It runs before each build, because a commit changes no source. The script writes its file only if the version differs, so
/// that a build without changes compiles nothing.
@main
struct VersionPlugin: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: Target) async throws -> [Command] {
    let package = context.package.directoryURL
    let output = context.pluginWorkDirectoryURL.appending(path: "Generated")
    return [
      .prebuildCommand(
        displayName: "Describing the version",
        executable: URL(filePath: "/bin/sh"),
        arguments: [
          package.appending(path: "Plugins/VersionPlugin/describe").path, package.path,
          output.appending(path: "BuildDescription.swift").path,
        ],
        outputFilesDirectory: output)
    ]
  }
}
