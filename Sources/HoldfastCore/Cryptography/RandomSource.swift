/// Unpredictable bytes, supplied from outside.
public protocol RandomSource: ~Copyable {
  /// Writes fresh random bytes over all of `bytes`; throws when there are none to be had, and `bytes` is then not to be used.
  mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure)
}

/// There was no randomness: nothing may go on without it.
public struct RandomFailure: Error {
  public init() {}
}

extension RandomSource where Self: ~Copyable {
  /// `count` fresh random bytes that are public: a challenge, an identifier, a nonce.
  public mutating func fixedBytes<let count: Int>() throws(RandomFailure) -> FixedBytes<count> {
    var fresh = FixedBytes<count>()
    var bytes = fresh.mutableBytes
    try fill(&bytes)
    return fresh
  }

  /// `count` fresh random bytes that are secret: a key.
  public mutating func secret<let count: Int>() throws(RandomFailure) -> Secret<count> {
    var fresh = Secret<count>()
    try fresh.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(RandomFailure) in
      try self.fill(&bytes)
    }
    return fresh
  }
}
