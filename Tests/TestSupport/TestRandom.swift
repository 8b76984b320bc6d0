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

/// A random source that does something else before the first request: what happens in the midst of an operation that needs
/// randomness.
package struct IntrusiveRandom: RandomSource {
  private var intrusion: (() -> Void)?
  private var random = TestRandom()

  package init(_ intrusion: @escaping () -> Void) { self.intrusion = intrusion }

  package mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure) {
    intrusion?()
    intrusion = nil
    try random.fill(&bytes)
  }
}

/// A random source that fills each request with the same bytes, from the first one on: a device must be safe even with
/// this.
package struct RepeatingRandom: RandomSource, Sendable {
  private let bytes: [UInt8]

  /// `bytes` are 1 by default, because a key of zeros is invalid.
  package init(_ bytes: [UInt8] = [1]) {
    self.bytes = bytes
  }

  package mutating func fill(_ output: inout MutableSpan<UInt8>) {
    for index in output.indices { output[index] = bytes[index % bytes.count] }
  }
}
