/// An app's version, three numbers, compared from the left.
public struct AppVersion: Sendable, Hashable, Comparable {
  public let major: UInt64
  public let minor: UInt64
  public let patch: UInt64

  public init(major: UInt64, minor: UInt64, patch: UInt64) {
    (self.major, self.minor, self.patch) = (major, minor, patch)
  }

  /// What a token without a version counts as.
  public static let zero = AppVersion(major: 0, minor: 0, patch: 0)

  public static func < (left: AppVersion, right: AppVersion) -> Bool {
    if left.major != right.major { return left.major < right.major }
    if left.minor != right.minor { return left.minor < right.minor }
    return left.patch < right.patch
  }
}
