import HoldfastLinux

/// A prover's end of a connection to a device, on any transport.
///
/// On a serial line it sees to it that the challenge is a fresh one, and drops the device's repetitions: docs/protocol.md, "A
/// device behind a serial line". On other transports it changes nothing.
package struct DeviceLink {
  /// How long a device on a serial line may take to speak by itself, in milliseconds.
  static let ownWordMilliseconds = 200
  /// How long a device may take to answer an empty frame before it gets another one: longer than it judges any message.
  package static let answerMilliseconds = 3000

  /// What carries the messages; to be sent on directly.
  package let connection: Connection
  /// The message that came last.
  private var last: [UInt8] = []
  /// Whether `last` was found before anybody asked for it.
  private var isHeld = false

  /// Takes a connection over on which nothing was received yet.
  package init(_ connection: Connection) {
    self.connection = connection
  }

  /// Connects; on a serial line, then waits until the device has spoken, or asks it for a challenge.
  ///
  /// - Throws: what ``Connection/connect(to:timeoutMilliseconds:silenceMilliseconds:)`` and
  ///   ``receive(by:wholeWithin:)`` throw.
  package init(to endpoint: Endpoint, timeoutMilliseconds: Int) throws(TransportError) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    try self.init(
      meeting: try Connection.connect(to: endpoint, timeoutMilliseconds: timeoutMilliseconds), by: deadline)
  }

  /// On a serial line, waits until the device has spoken, or asks it for a challenge.
  init(meeting connection: Connection, by deadline: Deadline) throws(TransportError) {
    self.init(connection)
    guard connection.isSerial, try !findWaiting(by: deadline) else { return }
    repeat {
      try connection.sendEmptyFrame(by: deadline)
    } while try !dropUntilEmptyFrame(by: min(deadline, Deadline(afterMilliseconds: DeviceLink.answerMilliseconds)))
      && !deadline.hasPassed
  }

  /// Receives the next message that is no repetition of the one before.
  ///
  /// - Parameters:
  ///   - deadline: until when to wait for the message to begin.
  ///   - wholeMilliseconds: how long it may take from its first byte on.
  /// - Returns: 1 to 4096 bytes.
  /// - Throws: as ``Connection/receive(into:firstByteBy:wholeWithin:)``.
  package mutating func receive(
    by deadline: Deadline, wholeWithin wholeMilliseconds: Int
  ) throws(TransportError) -> [UInt8] {
    if isHeld {
      isHeld = false
      return last
    }
    while true {
      let message = try next(by: deadline, wholeWithin: wholeMilliseconds)
      guard connection.isSerial, message == last else {
        last = message
        return message
      }
      if deadline.hasPassed { throw .timedOutWaiting }
    }
  }

  /// Keeps the last of the messages that are there; says whether there is one.
  private mutating func findWaiting(by deadline: Deadline) throws(TransportError) -> Bool {
    let end = min(deadline, Deadline(afterMilliseconds: DeviceLink.ownWordMilliseconds))
    repeat {
      do throws(TransportError) {
        last = try next(by: isHeld ? Deadline(afterMilliseconds: 0) : end, wholeWithin: deadline.remainingMilliseconds)
        isHeld = true
      } catch {
        switch error {
        case .timedOutWaiting: return isHeld
        // Meant for a prover before: what it has to do with lies behind it.
        case .emptyFrame: isHeld = false
        default: throw error
        }
      }
    } while !end.hasPassed
    return isHeld
  }

  /// Drops what comes before an empty frame; says whether one came before `deadline`.
  private func dropUntilEmptyFrame(by deadline: Deadline) throws(TransportError) -> Bool {
    do throws(TransportError) {
      while !deadline.hasPassed {
        _ = try next(by: deadline, wholeWithin: deadline.remainingMilliseconds)
      }
      return false
    } catch {
      if error == .emptyFrame { return true }
      guard error == .timedOutWaiting else { throw error }
      return false
    }
  }

  private func next(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
    var span = buffer.mutableSpan
    let received = try connection.receive(into: &span, firstByteBy: deadline, wholeWithin: max(wholeMilliseconds, 1))
    return Array(buffer[..<received.byteCount])
  }
}
