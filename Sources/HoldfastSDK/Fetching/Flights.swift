import Synchronization

/// Fetches under way. Calls that want the same at the same time share one request and its result.
final class Flights: Sendable {
  private final class Flight: Sendable {
    let result = Mutex<FetchResult?>(nil)
  }

  private let flights = Mutex<[String: Flight]>([:])

  /// Returns the result of `body`, or of the call with the same key that is under way.
  func share(_ key: String, _ body: () -> FetchResult) -> FetchResult {
    let own = Flight()
    // Others wait for this lock, so it is taken before they can find the flight.
    return own.result.withLock { slot in
      let other = flights.withLock { flights -> Flight? in
        if let other = flights[key] { return other }
        flights[key] = own
        return nil
      }
      if let other { return other.result.withLock { $0 } ?? body() }
      let result = body()
      slot = result
      flights.withLock { $0[key] = nil }
      return result
    }
  }
}
