import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport

/// A user's exchange with a device by means of a code from its owner: an activation or an unlocking, from connecting to
/// the end.
package struct ActivationExchange {
  package typealias Session = ActivationSession<OpenSSLCryptography, SystemRandom>

  private let endpoint: Endpoint
  private let timeoutMilliseconds: Int

  package init(at endpoint: Endpoint, timeoutMilliseconds: Int) {
    (self.endpoint, self.timeoutMilliseconds) = (endpoint, timeoutMilliseconds)
  }

  /// Runs the exchange. `store` must make the values from the device durable before it returns true.
  ///
  /// If this throws after `store` has returned, the device may or may not have received the confirmation.
  ///
  /// - Returns: False if `store` returned false, and the exchange was given up.
  package func run(
    _ session: consuming Session, store: (borrowing Session) -> Bool
  ) throws(ProverError) -> Bool {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    var link: DeviceLink
    do throws(TransportError) {
      link = try DeviceLink(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    } catch { throw ProverError(error) }
    var session = session
    while true {
      let message: [UInt8]
      do throws(TransportError) {
        message = try link.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds)
      } catch { throw ProverError(error) }
      do throws(ActivationFault) {
        switch try session.receive(message.span) {
        case .send: break
        case .store:
          guard store(session) else { return false }
          try session.confirm()
        case .done: return true
        }
      } catch { throw .activation(error) }
      do throws(TransportError) { try link.connection.send(session.outgoing.bytes, by: deadline) } catch {
        throw ProverError(error)
      }
    }
  }
}
