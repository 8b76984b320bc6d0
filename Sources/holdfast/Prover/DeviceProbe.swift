import HoldfastCore
import HoldfastKeys
import HoldfastTransport

extension ConnectionAttempt {
  /// Connects to `endpoint` and waits for a device's challenge; nothing is proved.
  init(to endpoint: Endpoint, timeoutMilliseconds: Int) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    do throws(TransportError) {
      let connection = try Connection.connect(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
      self = try ConnectionAttempt.challenge(over: connection, by: deadline)
    } catch { self = .failed(error) }
  }

  private static func challenge(
    over connection: Connection, by deadline: Deadline
  ) throws(TransportError) -> ConnectionAttempt {
    var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
    let count: Int
    do throws(TransportError) {
      var span = buffer.mutableSpan
      count = try connection.receive(
        into: &span, firstByteBy: deadline, wholeWithin: max(deadline.remainingMilliseconds, 1)
      ).byteCount
    } catch {
      switch error {
      case .timedOutWaiting: return .silent
      case .timedOutReading, .tooLong, .truncated: return .stranger
      default: throw error
      }
    }
    do throws(EncodingFault) {
      let message = buffer
      return .device(id: hexadecimal(try Challenge(message.span.extracting(0..<count)).deviceID.bytes))
    } catch { return .stranger }
  }
}
