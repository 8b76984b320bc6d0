import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// The connections that are being served: who has one of the places, and who gives one up for a newcomer.
///
/// A peer whose last round was accepted keeps its place for as long as its connection lasts; one token, or one code of the owner's,
/// keeps at most ``maximumPlacesPerCredential``. Of the others, the one that came first loses its place to a newcomer when all
/// are taken, but not within its first `provingMilliseconds`, nor while an answer of its own is judged: a command that acts is
/// always answered.
///
/// Why so: without that time, whoever connects fast enough would push every prover out before its proof, and a choice by lot
/// would only delay it. With that time, the oldest is better than any other: each peer keeps its place for as long as the
/// rate of newcomers allows, and none for much longer. What is left: newcomers without pause make an honest prover draw lots
/// with them for the places that fall free, `limit` of them in every `provingMilliseconds`; once it has one, it is safe from
/// them. A token that is denied, such as a revoked one, keeps no place, and one that is accepted keeps few.
final class ConnectionTable: Sendable {
  /// How many places one token, or one code of the owner's, keeps.
  static let maximumPlacesPerCredential = 4

  private let limit: Int
  private let provingMilliseconds: UInt64
  private let state = Mutex(State())

  private struct Place {
    let connection: Connection
    /// Monotonic milliseconds.
    let takenAt: UInt64
    /// What keeps the place; nil while a newcomer may have it.
    var credential: RoundCredential?
    var isJudged = false
  }

  private struct State {
    var places: [UInt64: Place] = [:]
    var lastNumber: UInt64 = 0
    var isClosed = false

    /// The connection that has to make room; nil when none has to.
    func oldestUnproved(takenBefore latest: UInt64) -> UInt64? {
      places.filter { $1.credential == nil && !$1.isJudged && $1.takenAt <= latest }.keys.min()
    }
  }

  init(limit: Int, provingMilliseconds: UInt64) {
    self.limit = limit
    self.provingMilliseconds = provingMilliseconds
  }

  /// Gives a connection a place, if need be that of another one, which is ended.
  ///
  /// - Returns: the number of the connection, counted from 1; nil when there is no place.
  func add(_ connection: Connection, atMilliseconds now: UInt64) -> UInt64? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      if state.places.count >= limit {
        guard now >= provingMilliseconds, let oldest = state.oldestUnproved(takenBefore: now - provingMilliseconds)
        else { return nil }
        // Its thread finds out by itself: nothing here waits for it.
        state.places.removeValue(forKey: oldest)?.connection.shutdown()
      }
      state.lastNumber += 1
      state.places[state.lastNumber] = Place(connection: connection, takenAt: now)
      return state.lastNumber
    }
  }

  /// Keeps the place of a connection until ``endJudging(_:acceptedBy:)``; false when it was lost already.
  func beginJudging(_ number: UInt64) -> Bool {
    state.withLock {
      $0.places[number]?.isJudged = true
      return $0.places[number] != nil
    }
  }

  /// An answer was judged. A peer keeps its place from an accepted round on, until one is not accepted, and unless the round's
  /// credential keeps too many.
  func endJudging(_ number: UInt64, acceptedBy credential: RoundCredential?) {
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

  /// How far the peers of a Bluetooth host have come, those over Low Energy.
  ///
  /// - Parameters:
  ///   - host: the address of the host's adapter, as the kernel calls it at the moment.
  ///   - now: monotonic milliseconds.
  func standing(of host: BluetoothAddress, atMilliseconds now: UInt64) -> LinkStanding {
    state.withLock { state in
      let places = state.places.values.filter { $0.connection.isLowEnergy && $0.connection.peer == .bluetooth(host) }
      if places.contains(where: { $0.credential != nil || $0.isJudged }) { return .proved }
      guard let first = places.map(\.takenAt).min() else { return .absent }
      return .connected(milliseconds: Int(clamping: now - min(first, now)))
    }
  }

  /// Frees the place of a connection; false when a newcomer had taken it.
  func remove(_ number: UInt64) -> Bool {
    state.withLock { $0.places.removeValue(forKey: number) } != nil
  }

  /// Ends every connection, now and later.
  func endAll() {
    state.withLock { state in
      state.isClosed = true
      for place in state.places.values { place.connection.shutdown() }
    }
  }
}

/// Lets a limited number of workers in, and says when the last one has left.
final class WorkerGate: Sendable {
  private let limit: Int
  private let state = Mutex(State())
  private let idle: WakeUp

  private struct State {
    var count = 0
    var isClosed = false
  }

  /// nil when the process has no descriptors left.
  init?(limit: Int) {
    guard let idle = try? WakeUp() else { return nil }
    self.limit = limit
    self.idle = idle
  }

  /// Lets one in, unless the gate is closed or all places are taken.
  func enter() -> Bool {
    state.withLock { state in
      guard !state.isClosed, state.count < limit else { return false }
      state.count += 1
      return true
    }
  }

  /// One leaves.
  func leave() {
    state.withLock { state in
      state.count -= 1
      if state.isClosed && state.count == 0 { idle.raise() }
    }
  }

  /// Lets nobody in any more, and returns once all have left.
  func closeAndWait() {
    state.withLock { state in
      state.isClosed = true
      if state.count == 0 { idle.raise() }
    }
    idle.wait(milliseconds: nil)
  }
}
