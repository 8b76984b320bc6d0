/// The digest of an executable file, in the form that a ``MeasurementPolicy`` demands. Digests of different forms are never equal.
public enum ImageDigest: Hashable, Sendable {
  /// SHA-256 of the file, 32 bytes.
  case flat(Digest)
  /// The root of the tree of the file's chunks, 32 bytes. Source: docs/measurement.md, "Tree digests".
  case tree(Digest)

  /// The digest itself, without its form.
  public var digest: Digest {
    switch self {
    case .flat(let digest), .tree(let digest): digest
    }
  }

  /// SHA-256 of the file; nil in the other form.
  package var flat: Digest? {
    if case .flat(let digest) = self { digest } else { nil }
  }

  /// The root of the tree; nil in the other form.
  package var tree: Digest? {
    if case .tree(let digest) = self { digest } else { nil }
  }
}
