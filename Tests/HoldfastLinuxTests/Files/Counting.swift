import Synchronization

/// Counts calls from closures.
final class Counter: Sendable {
  private let value = Atomic(0)

  /// The number of calls before this one.
  func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).oldValue }
}

/// Remembers steps from closures in their order.
final class Log: Sendable {
  private let steps = Mutex<[String]>([])

  var entries: [String] { steps.withLock { $0 } }

  func add(_ step: String) { steps.withLock { $0.append(step) } }
}
