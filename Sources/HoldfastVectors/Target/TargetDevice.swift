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
        guard error == .closed, !deadline.hasPassed else { throw error }
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
    while true {
      let message = try link.receive(by: deadline, wholeWithin: Self.wholeMilliseconds)
      if (try? Challenge(message.span)) != nil {
        self.link = link
        open = message
        return message
      }
      // Before a challenge, there may be a verdict on one that waited too long.
      if let status = try? VerdictMessage(message.span).status, status == .busy { throw .closed }
    }
  }
}
