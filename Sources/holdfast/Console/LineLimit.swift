import HoldfastCore
import Synchronization

/// A bound for lines of a log that strangers cause: of each kind, so many are written a minute, and the others are counted.
///
/// The bound is kept by kind, so that a flood of one kind does not hide another. There are as many kinds as the program has words
/// for them: nothing that a peer sends makes a new one.
final class LineLimit<Time: Clock & Sendable>: Sendable {
  private let clock: Time
  private let count: Int
  private let kinds = Mutex<[String: Kind]>([:])

  private struct Kind {
    /// Monotonic milliseconds.
    var since: UInt64
    var writtenCount = 0
    var leftOutCount: UInt64 = 0
  }

  private static var intervalMilliseconds: UInt64 { 60_000 }

  /// - Parameters:
  ///   - count: how many lines of a kind there are in a minute at most, besides the one that counts the others.
  ///   - clock: tells when a minute has passed.
  init(linesAMinute count: Int, clock: Time) {
    (self.count, self.clock) = (count, clock)
  }

  /// What is to be written of `line`: nothing, the line, or before it how many were left out.
  func admitted(_ line: LogLine) -> [LogLine] {
    let now = clock.monotonicMilliseconds()
    return kinds.withLock { kinds in
      let leftOut = Self.renew(&kinds, line.event, at: now)
      guard kinds[line.event]!.writtenCount < count else {
        kinds[line.event]!.leftOutCount += 1
        return leftOut
      }
      kinds[line.event]!.writtenCount += 1
      return leftOut + [line]
    }
  }

  /// How many lines were left out and not told of; of every kind, once its minute has passed, or at once.
  func due(isEnding: Bool = false) -> [LogLine] {
    let now = clock.monotonicMilliseconds()
    return kinds.withLock { kinds in
      kinds.keys.sorted().flatMap { Self.renew(&kinds, $0, at: now, isForced: isEnding) }
    }
  }

  /// Begins a kind's next minute where the last one has passed.
  private static func renew(
    _ kinds: inout [String: Kind], _ event: String, at now: UInt64, isForced: Bool = false
  ) -> [LogLine] {
    guard let kind = kinds[event] else {
      kinds[event] = Kind(since: now)
      return []
    }
    guard isForced || now >= kind.since + intervalMilliseconds else { return [] }
    kinds[event] = Kind(since: now)
    guard kind.leftOutCount > 0 else { return [] }
    let seconds = (now - kind.since) / 1000
    return [
      LogLine(
        event: "left-out", sentence: "\(kind.leftOutCount) more lines of '\(event)' were left out in \(seconds) s",
        members: [("of", .word(event)), ("lines", .number(kind.leftOutCount)), ("seconds", .number(seconds))])
    ]
  }
}
