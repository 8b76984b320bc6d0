import HoldfastCore

/// A random source whose bytes repeat from run to run, only for tests.
package struct TestRandom: RandomSource, Sendable {
  package var state: UInt64

  package init(state: UInt64 = 1) {
    self.state = state
  }

  package mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    for index in bytes.indices {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      bytes[index] = UInt8(truncatingIfNeeded: state >> 56)
    }
  }
}

/// A random source that always gives the same byte: a device must be safe even with this.
package struct PoorRandom: RandomSource, Sendable {
  /// The byte is not 0, because a key of zeros is invalid.
  private let byte: UInt8

  package init(byte: UInt8 = 1) {
    self.byte = byte
  }

  package mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    for index in bytes.indices { bytes[index] = byte }
  }
}
