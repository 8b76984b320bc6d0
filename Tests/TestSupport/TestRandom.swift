import HoldfastCore

/// Bytes that repeat from run to run: never for anything but tests.
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

/// The poorest source that there can be: a device must not rest on it.
package struct PoorRandom: RandomSource, Sendable {
  /// Not 0, which is no key.
  private let byte: UInt8

  package init(byte: UInt8 = 1) {
    self.byte = byte
  }

  package mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    for index in bytes.indices { bytes[index] = byte }
  }
}
