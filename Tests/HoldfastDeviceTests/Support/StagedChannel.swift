import HoldfastLinux
import HoldfastTransport
import Synchronization

/// A listener at which one peer arrives, within this process.
final class OnePeer: ChannelListener {
  private let arriving: Mutex<(any MessageChannel)?>
  private let stopFlag: WakeUp

  init(_ channel: any MessageChannel) throws {
    arriving = Mutex(channel)
    stopFlag = try WakeUp()
  }

  func acceptChannel() throws(TransportError) -> any MessageChannel {
    if let channel = arriving.withLock({ $0.take() }) { return channel }
    stopFlag.wait(milliseconds: nil)
    throw .cancelled
  }

  func cancel() { stopFlag.raise() }

  func close() {}
}

/// A device's end of a connection on which no time passes: a test says which messages do not come in time.
final class StagedChannel: MessageChannel {
  private let connection: Connection
  private let silences: Mutex<[Bool]>

  /// - Parameter silences: for each message that the device waits for, whether it does not come in time; any further
  ///   one has as long as it takes.
  init(_ connection: Connection, silences: [Bool] = []) {
    self.connection = connection
    self.silences = Mutex(silences)
  }

  func receive(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> ReceivedMessage {
    let isSilent = silences.withLock { $0.isEmpty ? false : $0.removeFirst() }
    guard !isSilent else { throw .timedOutWaiting }
    return try connection.receive(by: .never, wholeWithin: wholeMilliseconds)
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    try connection.send(message, by: deadline)
  }

  func shutdown() { connection.shutdown() }

  /// An answer that is held back is held for a minute.
  func isEnded(withinMilliseconds milliseconds: Int) -> Bool { connection.isEnded(withinMilliseconds: 60_000) }
}
