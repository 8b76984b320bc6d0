import CHost

extension HostFiles.LoaderView {
  /// The executable address ranges of every object that the loader knows of, rounded out to pages.
  var executableRanges: [Range<UInt64>] {
    switch self {
    case .fixed(let ranges): ranges
    case .live: Self.liveRanges()
    }
  }

  /// Source: dl_iterate_phdr(3).
  private static func liveRanges() -> [Range<UInt64>] {
    var capacity = 64
    while true {
      var ranges = [holdfast_range](repeating: holdfast_range(), count: capacity)
      let count = unsafe ranges.withUnsafeMutableBufferPointer {
        unsafe holdfast_executable_ranges($0.baseAddress, $0.count)
      }
      if count <= capacity { return ranges[..<count].map { $0.start..<$0.end } }
      capacity = count * 2
    }
  }
}
