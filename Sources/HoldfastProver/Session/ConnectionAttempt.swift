import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastTransport

extension ConnectionAttempt {
  /// Connects to `endpoint` and waits for a device's challenge, without proving anything.
  package init(to endpoint: Endpoint, timeoutMilliseconds: Int) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    do throws(TransportError) {
      var link = try DeviceLink(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
      self = try ConnectionAttempt.challenge(over: &link, by: deadline)
    } catch { self = .failed(error) }
  }

  private static func challenge(
    over link: inout DeviceLink, by deadline: Deadline
  ) throws(TransportError) -> ConnectionAttempt {
    let message: [UInt8]
    do throws(TransportError) {
      message = try link.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds)
    } catch {
      switch error {
      case .timedOutWaiting: return .silent
      case .timedOutReading, .tooLong, .truncated: return .stranger
      default: throw error
      }
    }
    do throws(EncodingFault) {
      return .device(id: hexadecimal(try Challenge(message.span).deviceID.bytes))
    } catch { return .stranger }
  }
}
