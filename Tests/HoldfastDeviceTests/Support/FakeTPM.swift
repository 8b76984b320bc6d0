import HoldfastCore
import HoldfastOpenSSL
import Synchronization
import TestSupport

import HoldfastDevice

/// Counters and keys in memory, which fail when a test says so.
final class FakeTPM: Sendable {
  static let path = "/fake"

  /// When it fails, counted in calls from when that is set.
  struct Failure: Sendable {
    var call: Int
    /// Whether what was asked is done all the same, and only the answer lost.
    var isDone = false
    /// Whether every later call fails too.
    var isLasting = false
    var fault = CounterFault.silent
  }

  private struct Counter {
    let authorization: [UInt8]
    var count: UInt64?
  }

  private struct Key {
    let authorization: [UInt8]
    let scalar: [UInt8]
  }

  private struct State {
    var keys: [UInt32: Key] = [:]
    var counters: [UInt32: Counter] = [:]
    var greatest: UInt64 = 0
    var failure: Failure?
    var calls = 0
  }

  private let state = Mutex(State())

  /// Nil lets it work again.
  func fail(_ failure: Failure?) {
    state.withLock { ($0.failure, $0.calls) = (failure, 0) }
  }

  /// How often it was called since the last ``fail(_:)``.
  var calls: Int { state.withLock { $0.calls } }

  /// The handles of its keys.
  var handles: Set<UInt32> { state.withLock { Set($0.keys.keys) } }

  /// Exchanges two keys, with their authorization values or without.
  func exchangeKeys(_ first: UInt32, _ second: UInt32, keepsAuthorization: Bool) {
    state.withLock { state in
      guard let left = state.keys[first], let right = state.keys[second] else { return }
      state.keys[first] = Key(
        authorization: keepsAuthorization ? left.authorization : right.authorization, scalar: right.scalar)
      state.keys[second] = Key(
        authorization: keepsAuthorization ? right.authorization : left.authorization, scalar: left.scalar)
    }
  }

  var indices: Set<UInt32> { state.withLock { Set($0.counters.keys) } }

  func count(at place: CounterPlace?) -> UInt64? {
    state.withLock { state in place.flatMap { state.counters[$0.index]?.count } }
  }

  /// Somebody else's counter, or one of his own in place of another.
  func put(at index: UInt32, authorization: [UInt8] = [1]) {
    state.withLock {
      $0.greatest += 1
      $0.counters[index] = Counter(authorization: authorization, count: $0.greatest)
    }
  }

  var operations: CounterOperations {
    var operations = counterOperations
    operations.keys = keyOperations
    return operations
  }

  private var keyOperations: TPMKeyOperations {
    TPMKeyOperations(
      make: { [self] (place, authorization, unique) throws(CounterFault) in
        let value = authorization.withBytes { Array($0) }
        return try call { (state) throws(CounterFault) in
          guard state.keys[place.handle] == nil else { throw .taken }
          // Nearly every number of 32 bytes is a scalar.
          let scalar = unique.bytes.array
          state.keys[place.handle] = Key(authorization: value, scalar: scalar)
          return try Self.pair(scalar).publicPoint
        }
      },
      remove: { [self] (place) throws(CounterFault) in
        try call { (state) throws(CounterFault) in
          guard state.keys.removeValue(forKey: place.handle) != nil else { throw .notDefined }
        }
      },
      agree: { [self] (place, authorization, peer, shared) throws(CounterFault) in
        let value = authorization.withBytes { Array($0) }
        let scalar = try call { (state) throws(CounterFault) in
          guard let key = state.keys[place.handle] else { throw .notDefined }
          guard key.authorization == value else { throw .notOurs }
          return key.scalar
        }
        var pair = try Self.pair(scalar)
        do throws(CryptographyFailure) { try pair.agree(with: peer, into: &shared) } catch { throw .malformed }
      })
  }

  private static func pair(_ scalar: [UInt8]) throws(CounterFault) -> P256PrivateKey {
    do throws(CryptographyFailure) {
      guard let secret = Secret<32>(copying: scalar.span) else { throw CryptographyFailure() }
      return try P256PrivateKey(scalar: secret)
    } catch { throw .malformed }
  }

  private var counterOperations: CounterOperations {
    CounterOperations(
      define: { [self] (place, authorization) throws(CounterFault) in
        let value = authorization.withBytes { Array($0) }
        try call { (state) throws(CounterFault) in
          guard state.counters[place.index] == nil else { throw .taken }
          state.counters[place.index] = Counter(authorization: value, count: nil)
        }
      },
      undefine: { [self] (place) throws(CounterFault) in
        try call { (state) throws(CounterFault) in
          guard state.counters.removeValue(forKey: place.index) != nil else { throw .notDefined }
        }
      },
      increment: { [self] (place, authorization) throws(CounterFault) in
        let value = authorization.withBytes { Array($0) }
        try call { (state) throws(CounterFault) in
          let count = try Self.counter(at: place, value, state).count ?? state.greatest
          state.counters[place.index]?.count = count + 1
          state.greatest = max(state.greatest, count + 1)
        }
      },
      read: { [self] (place, authorization) throws(CounterFault) in
        let value = authorization.withBytes { Array($0) }
        return try call { (state) throws(CounterFault) in
          guard let count = try Self.counter(at: place, value, state).count else { throw .notOurs }
          return count
        }
      })
  }

  private static func counter(
    at place: CounterPlace, _ authorization: [UInt8], _ state: State
  ) throws(CounterFault) -> Counter {
    guard let counter = state.counters[place.index] else { throw .notDefined }
    guard counter.authorization == authorization else { throw .notOurs }
    return counter
  }

  private func call<Result: Sendable>(
    _ body: (inout State) throws(CounterFault) -> Result
  ) throws(CounterFault) -> Result {
    try state.withLock { state throws(CounterFault) in
      state.calls += 1
      guard let failure = state.failure, state.calls == failure.call || failure.isLasting && state.calls > failure.call
      else { return try body(&state) }
      if failure.isDone { _ = try body(&state) }
      throw failure.fault
    }
  }
}
