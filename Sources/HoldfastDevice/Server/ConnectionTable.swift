import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// The places of the connections that are being served, and the rule by which one is ended for a newcomer.
///
/// A peer whose last round was accepted keeps its place for as long as its connection lasts. One token, or one of the owner's
/// codes, keeps at most ``maximumPlacesPerCredential``. If all places are taken, the oldest of the other connections loses
/// its place to a newcomer. It does not within its first `provingMilliseconds`, nor while its answer is being judged: a
/// command that acts is always answered.
///
/// Without that time, a peer that connects fast enough would displace every prover before its proof, and a random choice
/// would only delay that. With it, ending the oldest is better than any other choice: each peer keeps its place for as long
/// as the rate of newcomers allows, and none for much longer.
///
/// Remaining weakness: under a constant flood, honest provers compete at random with the newcomers for freed places, `limit`
/// of them in every `provingMilliseconds`. A prover that has got one is safe from them. A denied token, such as a revoked
/// one, keeps no place, and an accepted one keeps few.
package final class ConnectionTable: Sendable {
  /// The most places that one token, or one of the owner's codes, keeps.
  package static let maximumPlacesPerCredential = 4

  private let limit: Int
  private let provingMilliseconds: UInt64
  private let state = Mutex(State())

  private struct Place {
    let connection: any MessageChannel
    /// The time at which the connection got the place, in monotonic milliseconds.
    let takenAt: UInt64
    /// The credential that keeps the place; nil while a newcomer may take it.
    var credential: RoundCredential?
    var isJudged = false
  }

  private struct State {
    var places: [UInt64: Place] = [:]
    var lastNumber: UInt64 = 0
    var isClosed = false

    /// Returns the connection that a newcomer displaces; nil if there is none.
    func oldestUnproved(takenBefore latest: UInt64) -> UInt64? {
      places.filter { $1.credential == nil && !$1.isJudged && $1.takenAt <= latest }.keys.min()
    }
  }

  package init(limit: Int, provingMilliseconds: UInt64) {
    self.limit = limit
    self.provingMilliseconds = provingMilliseconds
  }

  /// Gives a connection a place. If all are taken, a connection that may lose its place is ended.
  ///
  /// - Returns: the number of the connection, counted from 1; nil if there is no place.
  package func add(_ connection: any MessageChannel, atMilliseconds now: UInt64) -> UInt64? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      if state.places.count >= limit {
        guard now >= provingMilliseconds, let oldest = state.oldestUnproved(takenBefore: now - provingMilliseconds)
        else { return nil }
        // The connection's thread notices the end. Nothing here waits for it.
        state.places.removeValue(forKey: oldest)?.connection.shutdown()
      }
      state.lastNumber += 1
      state.places[state.lastNumber] = Place(connection: connection, takenAt: now)
      return state.lastNumber
    }
  }

  /// Keeps the place of a connection until ``endJudging(_:acceptedBy:)``. Returns false if the connection has lost it
  /// already.
  package func beginJudging(_ number: UInt64) -> Bool {
    state.withLock {
      $0.places[number]?.isJudged = true
      return $0.places[number] != nil
    }
  }

  /// Records that an answer was judged. A peer keeps its place from an accepted round until a round is not accepted, unless
  /// the round's credential keeps too many places.
  package func endJudging(_ number: UInt64, acceptedBy credential: RoundCredential?) {
    state.withLock { state in
      state.places[number]?.isJudged = false
      guard let credential else {
        state.places[number]?.credential = nil
        return
      }
      guard let place = state.places[number], place.credential == nil else { return }
      let keptCount = state.places.values.count { $0.credential == credential }
      if keptCount < Self.maximumPlacesPerCredential { state.places[number]?.credential = credential }
    }
  }

  /// Returns the standing of a Bluetooth host's Low Energy connections.
  ///
  /// - Parameters:
  ///   - host: the address of the host's adapter, as the kernel has it at the moment.
  ///   - now: the monotonic clock, in milliseconds.
  package func standing(of host: BluetoothAddress, atMilliseconds now: UInt64) -> LinkStanding {
    state.withLock { state in
      let places = state.places.values.filter {
        ($0.connection as? Connection)?.isLowEnergy == true && $0.connection.peer == .bluetooth(host)
      }
      if places.contains(where: { $0.credential != nil || $0.isJudged }) { return .proved }
      guard let first = places.map(\.takenAt).min() else { return .absent }
      return .connected(milliseconds: Int(clamping: now - min(first, now)))
    }
  }

  /// Frees the place of a connection. Returns false if a newcomer had taken it.
  package func remove(_ number: UInt64) -> Bool {
    state.withLock { $0.places.removeValue(forKey: number) } != nil
  }

  /// Ends every connection, and refuses new ones from then on.
  package func endAll() {
    state.withLock { state in
      state.isClosed = true
      for place in state.places.values { place.connection.shutdown() }
    }
  }
}

/// A gate that admits a limited number of workers and waits until the last one has left.
package final class WorkerGate: Sendable {
  private let limit: Int
  private let state = Mutex(State())
  private let idle: WakeUp

  private struct State {
    var count = 0
    var isClosed = false
  }

  /// Makes an open gate; nil if the process has no descriptors left.
  package init?(limit: Int) {
    guard let idle = try? WakeUp() else { return nil }
    self.limit = limit
    self.idle = idle
  }

  /// Admits a worker. Returns false if the gate is closed or all places are taken.
  package func enter() -> Bool {
    state.withLock { state in
      guard !state.isClosed, state.count < limit else { return false }
      state.count += 1
      return true
    }
  }

  /// Records that a worker leaves.
  package func leave() {
    state.withLock { state in
      state.count -= 1
      if state.isClosed && state.count == 0 { idle.raise() }
    }
  }

  /// Closes the gate to new workers, and returns once all have left.
  package func closeAndWait() {
    state.withLock { state in
      state.isClosed = true
      if state.count == 0 { idle.raise() }
    }
    idle.wait(milliseconds: nil)
  }
}
