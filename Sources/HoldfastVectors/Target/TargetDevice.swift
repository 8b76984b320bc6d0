import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// A device at an endpoint, which answers the messages of test vectors: this project's, or anybody else's.
package struct TargetDevice {
  private let endpoint: Endpoint
  private let timeoutMilliseconds: Int
  private var link: DeviceLink?
  /// The device's last challenge, if nothing has been sent in answer to it.
  private var open: [UInt8]?
  /// The failed proofs on this connection. From the tenth on, a device would answer each a second later.
  private var failureCount = 0
  /// The tests without an answer since the last one with an answer.
  private var silentCount = 0

  /// Whether the device takes bulletins; nil while that is not known.
  var takesMail: Bool?
  /// Whether the device accepts a right round, by its request.
  var acceptsRounds: [[UInt8]: Bool] = [:]

  private static let patientFailureCount = 9
  private static let pauseMilliseconds: CInt = 10
  private static let mostSilent = 3
  private static let wholeMilliseconds = Limit.wholeMessage.everywhere

  /// Names a device, and connects to it with the first test.
  ///
  /// - Parameter timeoutMilliseconds: the time that it has for each message.
  package init(at endpoint: Endpoint, timeoutMilliseconds: Int) {
    (self.endpoint, self.timeoutMilliseconds) = (endpoint, timeoutMilliseconds)
  }

  /// Returns a challenge (M1) that has not been answered.
  ///
  /// A device that has ended the connection after its last answer, or that has no room yet, is asked again until the time is over.
  mutating func challenge() throws(TransportError) -> [UInt8] {
    if let open { return open }
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    while true {
      do throws(TransportError) {
        if link == nil { try connect() }
        return try receiveChallenge(by: deadline)
      } catch {
        disconnect()
        // On a line, the rest of an earlier message may come first.
        guard [.closed, .truncated, .tooLong].contains(error), !deadline.hasPassed else { throw error }
        _ = poll(nil, 0, Self.pauseMilliseconds)
      }
    }
  }

  /// Sends a message in answer to the challenge, and returns the device's answer to it.
  ///
  /// - Returns: the answer; nil for a device that has none, or ends the connection without one.
  /// - Throws: the error, if the device has been silent three times in a row.
  mutating func answer(to message: [UInt8]) throws(TransportError) -> [UInt8]? {
    open = nil
    do throws(TransportError) {
      guard var link else { throw .closed }
      let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
      try link.connection.send(message.span, by: deadline)
      let answer = try link.receive(by: deadline, wholeWithin: Self.wholeMilliseconds)
      self.link = link
      silentCount = 0
      note(answer)
      return answer
    } catch {
      disconnect()
      silentCount += 1
      if silentCount >= Self.mostSilent { throw error }
      return nil
    }
  }

  /// Whether messages are frames in a stream of bytes.
  var hasStream: Bool { endpoint.scheme.framing == .stream }
  /// Whether the device is at a serial line, or at a stream that stands for one.
  var isSerial: Bool { endpoint.scheme.isSerial }
  /// Whether the device is at a serial line, which no malformed message ends.
  var isTerminal: Bool {
    if case .terminal = endpoint.address { return true }
    return false
  }

  /// Sends bytes in answer to a challenge, and counts the answers until the device is quiet or ends the connection.
  ///
  /// The connection then ends. On a line, the device then knows that the bytes have ended.
  ///
  /// - Parameter expected: the answers for which the device has as much time as for any; the quiet begins afterwards.
  mutating func answers(
    toBytes bytes: [UInt8], expected: FrameAnswers, quietMilliseconds: Int
  ) throws(TransportError) -> FrameAnswers {
    _ = try challenge()
    defer { disconnect() }
    guard let connection = link?.connection else { return FrameAnswers() }
    // A device on a line may have been asked for the challenge twice.
    if isTerminal { _ = answers(on: connection, quietMilliseconds: TargetFrames.quietMilliseconds) }
    // A device may end the connection before it has read everything.
    do throws(TransportError) {
      try connection.sendBytes(bytes.span, by: Deadline(afterMilliseconds: timeoutMilliseconds))
    } catch {}
    let answers = answers(on: connection, expected: expected, quietMilliseconds: quietMilliseconds)
    if isSerial, !isTerminal {
      // A device with connections ends this one, and one without notices the silence.
      _ = Glibc.shutdown(connection.file.descriptor, CInt(SHUT_WR))
      _ = self.answers(on: connection, quietMilliseconds: TargetFrames.lineQuietMilliseconds)
    }
    return answers
  }

  private func answers(
    on connection: Connection, expected: FrameAnswers = FrameAnswers(), quietMilliseconds: Int
  ) -> FrameAnswers {
    var answers = FrameAnswers()
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    // A device that never stops must not keep the replay.
    let end = Deadline(afterMilliseconds: timeoutMilliseconds + quietMilliseconds)
    var quiet = Deadline(afterMilliseconds: quietMilliseconds)
    while !end.hasPassed {
      let isComplete =
        answers.malformedCount >= expected.malformedCount && answers.emptyCount >= expected.emptyCount
      do throws(TransportError) {
        let message = try connection.receive(
          by: isComplete ? quiet : deadline, wholeWithin: Self.wholeMilliseconds)
        switch try? VerdictMessage(message.bytes.span).status {
        case .malformed: answers.malformedCount += 1
        // A device on a line repeats its challenge, which does not prolong the wait.
        case nil, .challengeExpired:
          if isComplete ? quiet.hasPassed : deadline.hasPassed { return answers }
          continue
        default: answers.otherCount += 1
        }
      } catch {
        guard error == .emptyFrame else { return answers }
        answers.emptyCount += 1
      }
      quiet = Deadline(afterMilliseconds: quietMilliseconds)
    }
    return answers
  }

  /// Sends a message that needs no challenge, and returns the answer to it; nil for none. The connection then ends.
  mutating func answer(toMail message: [UInt8]) throws(TransportError) -> [UInt8]? {
    _ = try challenge()
    let answer = try answer(to: message)
    disconnect()
    return answer
  }

  /// Ends the connection if the device does, or if it would become slow.
  private mutating func note(_ answer: [UInt8]) {
    guard let link, !link.connection.isSerial, let status = try? VerdictMessage(answer.span).status else { return }
    if status.row.slows == .always { failureCount += 1 }
    if status == .malformed || failureCount >= Self.patientFailureCount { disconnect() }
  }

  private mutating func connect() throws(TransportError) {
    disconnect()
    link = try DeviceLink(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
  }

  private mutating func disconnect() {
    link?.connection.shutdown()
    (link, open, failureCount) = (nil, nil, 0)
  }

  private mutating func receiveChallenge(by deadline: Deadline) throws(TransportError) -> [UInt8] {
    guard var link else { throw .closed }
    while !deadline.hasPassed {
      let message = try link.receive(by: deadline, wholeWithin: Self.wholeMilliseconds)
      if (try? Challenge(message.span)) != nil {
        self.link = link
        open = message
        return message
      }
      // Before a challenge, there may be a verdict on one that waited too long.
      if let status = try? VerdictMessage(message.span).status, status == .busy { throw .closed }
    }
    throw .timedOutWaiting
  }
}
