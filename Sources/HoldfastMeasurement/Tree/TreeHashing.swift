import CHost
import HoldfastCore
import HoldfastLinux
import Synchronization

/// The hashing of several sources as trees, by as many threads as there are processors. Each thread takes the next chunk of all
/// sources.
///
/// The threads have ended when ``finish()`` returns or throws, and at the latest when the value is released.
package final class TreeHashing {
  /// The root of a source, and the time that all threads spent on it.
  package typealias Outcome = (root: Digest, nanoseconds: UInt64)
  /// Starts a thread; returns nil if none can be created.
  package typealias Starter = (@escaping @Sendable () -> Void) -> Thread?

  /// The number of chunks for which another thread is worth its start.
  private static let chunksPerThread = 8

  private let work: ChunkWork
  private var threads: [Thread] = []

  /// Starts hashing.
  ///
  /// - Parameters:
  ///   - sources: the sources.
  ///   - threadCount: the number of threads, this one included, which joins in ``finish()``. If fewer can be created, the others do the
  ///     work.
  ///   - starting: starts a thread.
  package init(
    _ sources: [TreeSource], threadCount: Int = Int(holdfast_processor_count()),
    starting start: Starter = { try? Thread(stackByteCount: 256 << 10, $0) }
  ) {
    let work = ChunkWork(sources)
    self.work = work
    for _ in 1..<max(1, min(threadCount, work.chunkCount / Self.chunksPerThread)) {
      guard let thread = start({ work.perform() }) else { break }
      threads.append(thread)
    }
  }

  deinit {
    work.stop()
    threads.forEach { $0.join() }
  }

  /// Hashes with the other threads to the end, and returns the outcomes in the order of the sources.
  ///
  /// - Throws: the first error of any thread.
  package func finish() throws(MeasurementError) -> [Outcome] {
    work.perform()
    threads.forEach { $0.join() }
    threads = []
    return try work.outcomes()
  }
}

/// The chunks of all sources, of which each thread takes the next one.
private final class ChunkWork: Sendable {
  private struct Chunk {
    let leaf: Digest
    let nanoseconds: UInt64
  }
  private struct State {
    var chunks: [Int: Chunk] = [:]
    var error: MeasurementError?
  }

  private let sources: [TreeSource]
  /// The chunks of each source, numbered over all sources.
  private let ranges: [Range<Int>]
  private let next = Atomic(0)
  private let state = Mutex(State())

  var chunkCount: Int { ranges.last?.upperBound ?? 0 }

  init(_ sources: [TreeSource]) {
    self.sources = sources
    var ranges: [Range<Int>] = []
    for source in sources {
      let first = ranges.last?.upperBound ?? 0
      ranges.append(first..<first + TreeDigest.chunkCount(of: source.byteCount))
    }
    self.ranges = ranges
  }

  /// Lets no thread take another chunk.
  func stop() { next.store(chunkCount, ordering: .relaxed) }

  /// Takes chunks until there are none.
  func perform() {
    var buffer = [UInt8](repeating: 0, count: TreeDigest.chunkByteCount)
    var chunks: [Int: Chunk] = [:]
    var place = 0
    do throws(MeasurementError) {
      while true {
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        guard number < chunkCount else { break }
        // Numbers only grow.
        while !ranges[place].contains(number) { place += 1 }
        let start = monotonicNanoseconds()
        let leaf = try sources[place].leaf(at: number - ranges[place].lowerBound, buffer: &buffer)
        chunks[number] = Chunk(leaf: leaf, nanoseconds: monotonicNanoseconds() - start)
      }
    } catch {
      stop()
      state.withLock { $0.error = $0.error ?? error }
    }
    state.withLock { $0.chunks.merge(chunks) { first, _ in first } }
  }

  /// Returns the roots, after all threads have ended.
  func outcomes() throws(MeasurementError) -> [TreeHashing.Outcome] {
    let (chunks, error) = state.withLock { ($0.chunks, $0.error) }
    if let error { throw error }
    var outcomes: [TreeHashing.Outcome] = []
    for (source, range) in zip(sources, ranges) {
      try source.checkIsUnchanged()
      let leaves = range.compactMap { chunks[$0] }
      guard leaves.count == range.count else { throw .cryptography }
      do throws(CryptographyFailure) {
        outcomes.append(
          (
            try TreeDigest.root(of: leaves.lazy.map(\.leaf), byteCount: source.byteCount),
            leaves.reduce(0) { $0 + $1.nanoseconds }
          ))
      } catch { throw .cryptography }
    }
    return outcomes
  }
}
