import HoldfastCharts
import HoldfastCore
import HoldfastFormats

/// One round with a board: the host's computations and the wait for the device, in nanoseconds, and the messages.
struct BoardRound {
  var host: UInt64 = 0
  var device: UInt64 = 0
  var answerCount = 0
  var answerByteCount = 0
  var verdictByteCount = 0
}

/// The speeds of a board and of its line, at which counted instructions and bytes are shown as times.
package struct BoardClock {
  let megahertz: UInt64
  let bitsPerSecond: UInt64

  /// Creates a clock from two positive numbers.
  package init(megahertz: UInt64, bitsPerSecond: UInt64) {
    (self.megahertz, self.bitsPerSecond) = (megahertz, bitsPerSecond)
  }

  /// The nanoseconds of `instructions`, one a cycle.
  package func nanoseconds(instructions: UInt64) -> UInt64 { instructions * 1000 / megahertz }

  /// The nanoseconds of messages of these lengths on the line: each byte takes ten bits, and two bytes with the length come before each
  /// message. Source: docs/protocol.md, "Frames".
  package func nanoseconds(messageByteCounts: [Int]) -> UInt64 {
    let byteCount = messageByteCounts.reduce(0) { $0 + $1 + 2 }
    return UInt64(byteCount) * 10 * 1_000_000_000 / bitsPerSecond
  }

  var text: String {
    "at \(megahertz) MHz, one instruction a cycle, over \(NumberText.of(Double(bitsPerSecond))) bits a second"
  }
}

/// The rounds of both kinds: whole tokens, then remembered ones.
struct BoardRounds {
  private(set) var overLine = ["first", "remembered"].map { BenchSeries($0, parts: ["host", "line and device"]) }
  private(set) var bytes = [0, 0]
  private(set) var instructions: [LatencyHistogram] = []
  private var rounds: [BoardRound] = []
  private var computed: [BenchSeries] = []
  var common: [(String, JSONValue)] = []

  /// The series that people see: by counted instructions, if there are any.
  var shown: [BenchSeries] { computed.isEmpty ? overLine : computed }

  /// Adds a round; whole and remembered tokens come in turn.
  mutating func add(_ round: BoardRound) {
    let kind = rounds.count % 2
    rounds.append(round)
    overLine[kind].record(partNanoseconds: [round.host, round.device])
    bytes[kind] = max(bytes[kind], round.answerByteCount)
  }

  /// Takes the instructions of all answers, of which the first two do not count.
  mutating func count(_ taken: [UInt64], _ clock: BoardClock, in path: String) throws(Failure) {
    guard taken.count == 2 + rounds.count else {
      throw Failure(
        .malformed, "\(path) has \(taken.count) new answers, which are not those of these rounds",
        hint: "start the board with firmware-sim/run --count --console \(path.shellWord), and let nobody else use it")
    }
    instructions = overLine.map { _ in LatencyHistogram() }
    computed = overLine.map { BenchSeries($0.name, parts: ["device", "line", "host"]) }
    for (index, (round, count)) in zip(rounds, taken.dropFirst(2)).enumerated() {
      instructions[index % 2].record(count)
      let line = clock.nanoseconds(messageByteCounts: [round.answerByteCount, round.verdictByteCount])
      computed[index % 2].record(partNanoseconds: [clock.nanoseconds(instructions: count), line, round.host])
    }
  }
}

/// The console of the firmware in a file. Its lines tell the ticks of each answer, of 40 instructions each.
package struct BoardConsole {
  /// The instructions of each answer, in their order.
  package let instructions: [UInt64]

  private static let byteLimit = 64 << 20

  /// Reads the file.
  init(_ path: String) throws(Failure) {
    self.init(text: String(decoding: try Input.read(path, limit: Self.byteLimit), as: UTF8.self))
  }

  /// Reads the lines `holdfast: status S, ticks T, stack B`, and skips others.
  package init(text: String) {
    var instructions: [UInt64] = []
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
      let parts = line.split(separator: UInt8(ascii: ","))
      guard parts.count == 3, parts[0].starts(with: "holdfast: status ".utf8), parts[1].starts(with: " ticks ".utf8),
        let ticks = decimal(String(Substring(parts[1].dropFirst(" ticks ".utf8.count)))), ticks <= UInt32.max
      else { continue }
      instructions.append(ticks * 40)
    }
    self.instructions = instructions
  }
}
