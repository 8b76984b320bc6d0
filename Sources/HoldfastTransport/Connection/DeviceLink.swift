import HoldfastCore
import HoldfastLinux

/// A prover's end of a connection to a device, on any transport.
///
/// On a serial line it ensures that the challenge is fresh, and drops the device's repetitions. On other transports it changes
/// nothing. Source: docs/protocol.md, "A device behind a serial line".
package struct DeviceLink {
  /// The time that a device on a serial line has to send a message unasked, in milliseconds.
  static let ownWordMilliseconds = 200
  /// The number of waiting messages that are read in any case, even if that takes longer on a busy machine.
  private static let waitingCount = 100
  /// The time that a device has to answer an empty frame before it gets another one, in milliseconds.
  ///
  /// It is longer than a device takes to appraise a message, apart from what an actuator takes for a command.
  package static let answerMilliseconds = 3000
  /// The time that a device which was asked more than once has for its further answers, in milliseconds.
  package static let lateMilliseconds = 1000

  /// The connection that carries the messages. Messages to the device are sent on it directly.
  package let connection: Connection
  /// The last message that was received.
  private var last: [UInt8] = []
  /// Whether `last` was received before a caller asked for it.
  private var isHeld = false

  /// Wraps a connection on which nothing has been received yet.
  package init(_ connection: Connection) {
    self.connection = connection
  }

  /// Connects. On a serial line, it then waits until the device has sent a message, or asks it for a challenge.
  ///
  /// - Throws: the errors of ``Connection/connect(to:timeoutMilliseconds:silenceMilliseconds:)`` and
  ///   ``receive(by:wholeWithin:)``.
  package init(to endpoint: Endpoint, timeoutMilliseconds: Int) throws(TransportError) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    try self.init(
      meeting: try Connection.connect(to: endpoint, timeoutMilliseconds: timeoutMilliseconds), by: deadline)
  }

  /// On a serial line, waits until the device has sent a message, or asks it for a challenge.
  package init(meeting connection: Connection, by deadline: Deadline) throws(TransportError) {
    self.init(connection)
    guard connection.isSerial, try !findWaiting(by: deadline) else { return }
    var lateCount = -1
    repeat {
      try connection.sendEmptyFrame(by: deadline)
      lateCount += 1
    } while try !dropUntilEmptyFrame(
      by: min(deadline, Deadline(afterMilliseconds: DeviceLink.answerMilliseconds)), wholeBy: deadline)
      && !deadline.hasPassed
    if lateCount > 0 { try awaitAnswers(lateCount, by: deadline) }
  }

  /// Receives the next message that does not repeat the one before. Answers to mail may be equal, and are never repeated.
  ///
  /// - Parameters:
  ///   - deadline: the time by which the message must begin.
  ///   - wholeMilliseconds: the maximum time from the first byte of the message to its last.
  /// - Returns: 1 to 4096 bytes.
  /// - Throws: the errors of ``Connection/receive(into:firstByteBy:wholeWithin:)``.
  package mutating func receive(
    by deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> [UInt8] {
    if isHeld {
      isHeld = false
      return last
    }
    while true {
      let message: [UInt8]
      do throws(TransportError) { message = try next(by: deadline, wholeWithin: wholeMilliseconds) } catch {
        // What follows an empty frame repeats nothing.
        if error == .emptyFrame { last = [] }
        throw error
      }
      let isMail = (try? BulletinAnswer(message.span)) != nil || (try? PageAnswer(message.span)) != nil
      guard connection.isSerial, message == last, !isMail else {
        last = message
        return message
      }
      if deadline.hasPassed { throw .timedOutWaiting }
    }
  }

  /// Keeps the last of the messages that have arrived, and returns whether there is one.
  private mutating func findWaiting(by deadline: Deadline) throws(TransportError) -> Bool {
    let end = min(deadline, Deadline(afterMilliseconds: DeviceLink.ownWordMilliseconds))
    var count = 0
    repeat {
      count += 1
      do throws(TransportError) {
        last = try next(by: isHeld ? Deadline(afterMilliseconds: 0) : end, wholeWithin: deadline.remainingMilliseconds)
        isHeld = true
      } catch {
        switch error {
        case .timedOutWaiting: return isHeld
        // Addressed to a previous prover; every message before it is stale.
        case .emptyFrame: isHeld = false
        default: throw error
        }
      }
    } while !end.hasPassed || count < DeviceLink.waitingCount
    return isHeld
  }

  /// Drops the messages before an empty frame, and returns whether one arrived before `deadline`. A message that has begun by then
  /// may end later.
  private func dropUntilEmptyFrame(
    by deadline: Deadline, wholeBy end: Deadline
  ) throws(TransportError) -> Bool {
    do throws(TransportError) {
      while !deadline.hasPassed {
        _ = try next(by: deadline, wholeWithin: end.remainingMilliseconds)
      }
      return false
    } catch {
      if error == .emptyFrame { return true }
      guard error == .timedOutWaiting else { throw error }
      return false
    }
  }

  /// Waits for the answers to the other empty frames, since a slow device begins anew with each, and keeps the last challenge. A
  /// device in the middle of another message may have swallowed some.
  private mutating func awaitAnswers(_ count: Int, by deadline: Deadline) throws(TransportError) {
    let end = min(deadline, Deadline(afterMilliseconds: DeviceLink.lateMilliseconds))
    var count = count
    while count > 0, !end.hasPassed {
      do throws(TransportError) {
        last = try next(by: end, wholeWithin: deadline.remainingMilliseconds)
        isHeld = true
      } catch {
        if error == .timedOutWaiting { return }
        guard error == .emptyFrame else { throw error }
        isHeld = false
        count -= 1
      }
    }
  }

  private func next(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> [UInt8] {
    try connection.receive(by: deadline, wholeWithin: max(wholeMilliseconds, 1)).bytes
  }
}
