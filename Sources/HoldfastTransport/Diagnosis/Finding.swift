/// One thing that was looked at, and how it is.
public struct Finding: Sendable, Equatable {
  public enum Topic: Sendable, Equatable {
    /// Whether the kernel has Bluetooth.
    case kernel
    /// Whether it has this protocol of it.
    case l2cap
    case rfcomm
    /// Whether there is an adapter, or the one that the endpoint names.
    case adapter
    /// What blocks the radio.
    case radio(RadioBlock?)
    /// Whether it is powered on.
    case power
    /// Whether Low Energy is on.
    case lowEnergy
    /// Whether it lets itself be connected to, by classic Bluetooth.
    case connectable
    /// Whether it is found by others, by classic Bluetooth.
    case discoverable
    /// Whether it pairs without a PIN.
    case secureSimplePairing
    /// Whether it keeps pairings.
    case bondable
    /// Whether this process has CAP_NET_ADMIN.
    case administration
    /// The SDP server of this host, which keeps a device's records.
    case discoveryServer(HostFacts.DiscoveryServer)
    /// What came of connecting to the endpoint.
    case connection(ConnectionAttempt)
  }

  public enum State: Sendable, Equatable {
    case ok
    /// Nothing works without it.
    case missing
    /// It is there, and this user may not use it.
    case forbidden
    /// Only part of what Holdfast does takes it.
    case note
  }

  /// What was looked at.
  public let topic: Topic
  /// How it is.
  public let state: State

  init(_ topic: Topic, _ state: State) {
    self.topic = topic
    self.state = state
  }
}

/// What came of connecting to an endpoint and waiting for a device's challenge.
public enum ConnectionAttempt: Sendable, Equatable {
  /// A device answered; its id as hex digits.
  case device(id: String)
  /// Somebody answered who does not speak the protocol.
  case stranger
  /// Somebody took the connection and said nothing.
  case silent
  case failed(TransportError)
}
