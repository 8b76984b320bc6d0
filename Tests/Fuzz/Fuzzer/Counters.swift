import Glibc

/// The counters that the compiler adds to the program, a byte for each place, and the table of the places' addresses.
///
/// libFuzzer clears and reads all counters that it knows for each input. Of a small reader, that takes most of the time, so that it is
/// told only of those near the places that the inputs of a corpus reach.
enum Counters {
  /// The counters of this program, in the order of the places in it.
  nonisolated(unsafe) fileprivate static var counters = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)
  /// The address and the flags of each place.
  nonisolated(unsafe) fileprivate static var places: UnsafePointer<(UInt, UInt)>?

  /// That many places next to each other are known or unknown together.
  private static let groupSize = 128

  /// Tells libFuzzer of all counters.
  static func tellAll() { tell(0..<counters.count) }

  /// Runs a function, and tells libFuzzer of the counters in the groups that it reaches, and in those beside them.
  static func tell(thoseReachedBy body: () -> Void) {
    body()
    let groups = (counters.count + groupSize - 1) / groupSize
    let isReached = (0..<groups).map { group in
      counters[group * groupSize..<min((group + 1) * groupSize, counters.count)].contains { $0 != 0 }
    }
    let isNear = (0..<groups).map { isReached[max($0 - 1, 0)...min($0 + 1, groups - 1)].contains(true) }
    var group = 0
    while let first = isNear[group...].firstIndex(of: true) {
      group = isNear[first...].firstIndex(of: false) ?? groups
      tell(first * groupSize..<min(group * groupSize, counters.count))
    }
  }

  private static func tell(_ range: Range<Int>) {
    guard let start = counters.baseAddress, let places, !range.isEmpty else { return }
    // The table is told after the counters that it belongs to.
    countersAreAt(start + range.lowerBound, start + range.upperBound)
    placesAreAt(places + range.lowerBound, places + range.upperBound)
  }
}

// The linker has the program's own code call these in place of libFuzzer's (`--wrap`).

/// Keeps the counters, before the program begins.
@_cdecl("__wrap___sanitizer_cov_8bit_counters_init")
public func keepCounters(_ start: UnsafeMutablePointer<UInt8>, _ end: UnsafeMutablePointer<UInt8>) {
  Counters.counters = UnsafeMutableBufferPointer(start: start, count: end - start)
}

/// Keeps the table, before the program begins.
@_cdecl("__wrap___sanitizer_cov_pcs_init")
public func keepPlaces(_ start: UnsafeRawPointer, _ end: UnsafeRawPointer) {
  Counters.places = start.assumingMemoryBound(to: (UInt, UInt).self)
}

@_silgen_name("__real___sanitizer_cov_8bit_counters_init")
private func countersAreAt(_ start: UnsafeMutablePointer<UInt8>, _ end: UnsafeMutablePointer<UInt8>)

@_silgen_name("__real___sanitizer_cov_pcs_init")
private func placesAreAt(_ start: UnsafePointer<(UInt, UInt)>, _ end: UnsafePointer<(UInt, UInt)>)
