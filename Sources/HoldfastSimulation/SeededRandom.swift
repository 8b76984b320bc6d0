import Glibc

/// A random source that gives the same numbers for the same seed: it is for simulations, and not for secrets.
///
/// Source: SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014).
package struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  /// Creates a source. `stream` keeps the numbers for one purpose apart from those for another.
  package init(seed: UInt64, stream: UInt64) { state = Self.mixed(seed &+ Self.mixed(stream)) }

  /// Returns the next 64 bits.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Self.mixed(state)
  }

  /// Returns a number from 0 to 1, without 1.
  mutating func share() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// Returns an integer from 0 to `count` - 1.
  mutating func index(below count: Int) -> Int { Int(next().multipliedFullWidth(by: UInt64(count)).high) }

  /// Returns the time to the next of events that come at random, with `rate` of them in a unit of time.
  mutating func interval(rate: Double) -> Double { -log(1 - share()) / rate }

  /// Mixes the bits of a number.
  private static func mixed(_ value: UInt64) -> UInt64 {
    var value = value
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}

/// A choice of one of many, of which the one at index n is chosen with a probability that is proportional to 1/(n + 1)^s.
///
/// Source: Zipf's law, with the exponent s.
struct ZipfChoice {
  /// The sums of the weights up to each index.
  private let sums: [Double]

  init(count: Int, exponent: Double) {
    var sum = 0.0
    sums = (1...count).map { rank in
      sum += pow(Double(rank), -exponent)
      return sum
    }
  }

  /// Returns the index for a number from 0 to 1, without 1.
  func index(at share: Double) -> Int {
    let target = share * sums[sums.count - 1]
    var (low, high) = (0, sums.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if sums[middle] > target { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
