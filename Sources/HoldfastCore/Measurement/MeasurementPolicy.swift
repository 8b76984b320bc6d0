/// The ways of measuring that a baseline permits or demands. Both measurements contain them, so a service sees them in evidence, and
/// nobody can add one afterwards.
///
/// Source: docs/protocol.md, Measurement configuration, label 7.
public struct MeasurementPolicy: OptionSet, Sendable, Hashable {
  /// The bits, one byte.
  public let rawValue: UInt8

  /// Creates the set with the given bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Bytes of code that this process has hashed, and that only root can have changed since, need not be hashed again.
  public static let knownCode = MeasurementPolicy(rawValue: 1)

  /// The digests of the executable file and of code in memory are roots of trees, whose chunks all processors hash at once. A digest in
  /// this form never counts as one in the other.
  public static let treeDigests = MeasurementPolicy(rawValue: 2)

  /// Every bit that has a meaning.
  static let all: MeasurementPolicy = [.knownCode, .treeDigests]
}
