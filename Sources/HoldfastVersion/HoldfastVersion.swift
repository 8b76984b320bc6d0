/// The version of the sources that this program was built from.
package enum HoldfastVersion {
  /// Git's description of them: the last tag, the number of commits after it and the commit, as far as there are any, with
  /// `-dirty` behind it where files differ from the commit. `unknown` where neither git nor the archive's `VERSION` says.
  ///
  /// Source: `Plugins/VersionPlugin/describe`, when the program is built.
  package static var description: String { buildDescription }
}
