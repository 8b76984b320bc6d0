import HoldfastCore
import HoldfastTransport

extension RoundTransport {
  /// The transport of a channel; nil for a channel of an app's own.
  init?(of channel: any MessageChannel) {
    guard let scheme = (channel as? Connection)?.scheme else { return nil }
    switch scheme.name {
    case Scheme.unix.name: self = .socket
    case Scheme.l2cap.name: self = .l2cap
    case Scheme.rfcomm.name: self = .rfcomm
    case Scheme.lowEnergy.name: self = .lowEnergy
    default:
      guard scheme.isSerial else { return nil }
      self = .serial
    }
  }
}
