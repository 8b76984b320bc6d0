#if Service
import CoreMetrics
import Synchronization

/// The metrics of this process, as Prometheus reads them: counters, gauges, and sums and counts of durations.
///
/// Source: Prometheus's text format, version 0.0.4.
final class PrometheusMetrics: MetricsFactory, Sendable {
  /// A metric with its dimensions.
  private struct Key: Hashable, Comparable {
    let name: String
    let labels: String

    static func < (left: Key, right: Key) -> Bool { (left.name, left.labels) < (right.name, right.labels) }
  }

  private struct State {
    var counters: [Key: Int64] = [:]
    var gauges: [Key: Double] = [:]
    var durations: [Key: (nanoseconds: Int64, count: Int64, buckets: [Int64])] = [:]
  }

  /// The upper bounds of the buckets of durations, in milliseconds.
  private static let bounds: [Int64] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]

  private let state = Mutex(State())

  /// All metrics, in order of their names.
  var text: String {
    state.withLock { state in
      var lines: [String] = []
      var described: Set<String> = []
      func describe(_ name: String, _ type: String) {
        if described.insert(name).inserted { lines.append("# TYPE \(name) \(type)") }
      }
      for (key, value) in state.counters.sorted(by: { $0.key < $1.key }) {
        describe(key.name, "counter")
        lines.append("\(key.name)\(Self.braces(key.labels)) \(value)")
      }
      for (key, value) in state.gauges.sorted(by: { $0.key < $1.key }) {
        describe(key.name, "gauge")
        lines.append("\(key.name)\(Self.braces(key.labels)) \(value)")
      }
      for (key, value) in state.durations.sorted(by: { $0.key < $1.key }) {
        describe(key.name, "histogram")
        let separator = key.labels.isEmpty ? "" : ","
        for (index, bound) in Self.bounds.enumerated() {
          lines.append(
            "\(key.name)_bucket{\(key.labels)\(separator)le=\"\(Double(bound) / 1000)\"} \(value.buckets[index])")
        }
        lines.append("\(key.name)_bucket{\(key.labels)\(separator)le=\"+Inf\"} \(value.count)")
        lines.append("\(key.name)_sum\(Self.braces(key.labels)) \(Double(value.nanoseconds) / 1e9)")
        lines.append("\(key.name)_count\(Self.braces(key.labels)) \(value.count)")
      }
      return lines.map { $0 + "\n" }.joined()
    }
  }

  private static func braces(_ labels: String) -> String { labels.isEmpty ? "" : "{\(labels)}" }

  private static func key(_ label: String, _ dimensions: [(String, String)]) -> Key {
    let labels = dimensions.map { name, value in
      "\(name)=\"\(escaped(value))\""
    }
    return Key(name: label, labels: labels.joined(separator: ","))
  }

  private static func escaped(_ value: String) -> String {
    let isPlain = value.utf8.allSatisfy { ![UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "\n")].contains($0) }
    if isPlain { return value }
    let characters = value.map { character -> String in
      switch character {
      case "\\": "\\\\"
      case "\"": "\\\""
      case "\n": "\\n"
      default: String(character)
      }
    }
    return characters.joined()
  }

  private func increment(_ key: Key, by amount: Int64) {
    state.withLock { $0.counters[key, default: 0] &+= amount }
  }

  private func record(_ key: Key, nanoseconds: Int64) {
    state.withLock { state in
      var value = state.durations[key] ?? (0, 0, Array(repeating: 0, count: Self.bounds.count))
      value.nanoseconds &+= nanoseconds
      value.count += 1
      for (index, bound) in Self.bounds.enumerated() where nanoseconds <= bound * 1_000_000 {
        value.buckets[index] += 1
      }
      state.durations[key] = value
    }
  }

  private func set(_ key: Key, to value: Double) { state.withLock { $0.gauges[key] = value } }

  private final class Handler: CounterHandler, TimerHandler, RecorderHandler, Sendable {
    let key: Key
    let metrics: PrometheusMetrics

    init(key: Key, metrics: PrometheusMetrics) { (self.key, self.metrics) = (key, metrics) }

    func increment(by amount: Int64) { metrics.increment(key, by: amount) }
    func reset() {}
    func recordNanoseconds(_ duration: Int64) { metrics.record(key, nanoseconds: duration) }
    func record(_ value: Int64) { metrics.set(key, to: Double(value)) }
    func record(_ value: Double) { metrics.set(key, to: value) }
  }

  private func handler(_ label: String, _ dimensions: [(String, String)]) -> Handler {
    Handler(key: Self.key(label, dimensions), metrics: self)
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { handler(label, dimensions) }
  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    handler(label, dimensions)
  }
  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { handler(label, dimensions) }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}
#endif
