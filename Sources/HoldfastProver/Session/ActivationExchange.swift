import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport

/// The way to a device: its address, or a channel of the app's own that is already connected.
package enum DeviceAddress: Sendable {
  case endpoint(Endpoint)
  case channel(any MessageChannel)
}

/// A user's exchange with a device by means of a code from its owner: an activation or an unlocking, from connecting to
/// the end.
package struct ActivationExchange {
  package typealias Session = ActivationSession<OpenSSLCryptography, SystemRandom>

  private let address: DeviceAddress
  private let timeoutMilliseconds: Int

  package init(at address: DeviceAddress, timeoutMilliseconds: Int) {
    (self.address, self.timeoutMilliseconds) = (address, timeoutMilliseconds)
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
    var conversation =
      switch address {
      case .endpoint(let endpoint): try Conversation(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
      case .channel(let channel): Conversation(over: channel)
      }
    var session = session
    while true {
      try conversation.receive(by: deadline)
      let message = conversation.received
      do throws(ActivationFault) {
        switch try session.receive(message.span) {
        case .send: break
        case .store:
          guard store(session) else { return false }
          try session.confirm()
        case .done: return true
        }
      } catch { throw .activation(error) }
      try conversation.send(session.outgoing.bytes, by: deadline)
    }
  }
}
