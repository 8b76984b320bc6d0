import Glibc

/// A report on the parts of this host that Holdfast needs; a part is listed before the parts that depend on it.
package struct Diagnosis: Sendable, Equatable {
  /// The number of the adapter that was examined; nil if there is none.
  package private(set) var adapter: UInt16?
  /// The diagnostics, in the order in which they were made.
  package private(set) var diagnostics: [Diagnostic] = []

  /// Evaluates `facts`.
  ///
  /// - Parameters:
  ///   - facts: the facts about this host; nil if Bluetooth does not matter.
  ///   - endpoint: the endpoint to reach; nil for any.
  ///   - attempt: the result of connecting to it; nil if that was not tried.
  package init(_ facts: HostFacts?, for endpoint: Endpoint?, _ attempt: ConnectionAttempt?) {
    adapter = endpoint?.adapter
    if let facts { examine(facts, for: endpoint?.scheme) }
    if let attempt { diagnostics.append(Diagnostic(.connection(attempt), attempt.state)) }
  }

  /// The worst state among the diagnostics: `missing`, else `forbidden`, else `ok`.
  package var state: Diagnostic.State {
    for state in [Diagnostic.State.missing, .forbidden] where diagnostics.contains(where: { $0.state == state }) {
      return state
    }
    return .ok
  }

  private mutating func examine(_ facts: HostFacts, for scheme: Scheme?) {
    add(.kernel, facts.hasKernelSupport)
    guard facts.hasKernelSupport else { return }
    add(.l2cap, facts.hasL2CAP)
    if scheme?.radio == nil || scheme == .rfcomm { add(.rfcomm, facts.hasRFCOMM) }
    let chosen = Adapter.chosen(adapter, of: facts.adapters)
    add(.adapter, chosen != nil)
    if let chosen { examine(chosen, for: scheme?.radio) }
    add(.administration, facts.isAdministrator, otherwise: .note)
    guard scheme?.radio != .lowEnergy else { return }
    // A Bluetooth endpoint with a fixed number works without an SDP server.
    add(.discoveryServer(facts.discoveryServer), facts.discoveryServer == .ready, otherwise: .note)
  }

  private mutating func examine(_ adapter: Adapter, for radio: Scheme.Radio?) {
    self.adapter = adapter.number
    add(.radio(adapter.block), adapter.block == nil)
    add(.power, adapter.settings.contains(.powered))
    if radio != .classic {
      add(.lowEnergy, adapter.settings.contains(.lowEnergy), otherwise: radio == nil ? .note : .missing)
    }
    if radio != .lowEnergy {
      add(.connectable, adapter.settings.contains(.connectable), otherwise: .note)
      add(.discoverable, adapter.settings.contains(.discoverable), otherwise: .note)
      add(.secureSimplePairing, adapter.settings.contains(.secureSimplePairing), otherwise: .note)
    }
    add(.bondable, adapter.settings.contains(.bondable), otherwise: .note)
  }

  private mutating func add(
    _ topic: Diagnostic.Topic, _ isFulfilled: Bool, otherwise state: Diagnostic.State = .missing
  ) {
    diagnostics.append(Diagnostic(topic, isFulfilled ? .ok : state))
  }
}

extension ConnectionAttempt {
  fileprivate var state: Diagnostic.State {
    switch self {
    case .device: .ok
    case .failed(.permissionDenied): .forbidden
    case .stranger, .silent, .failed: .missing
    }
  }
}

/// The state of one examined part.
package struct Diagnostic: Sendable, Equatable {
  /// An examined part.
  package enum Topic: Sendable, Equatable {
    /// Bluetooth in the kernel.
    case kernel
    /// L2CAP in the kernel.
    case l2cap
    /// RFCOMM in the kernel.
    case rfcomm
    /// An adapter: the one that the endpoint names, or any.
    case adapter
    /// The radio of the adapter, and the block on it; nil if nothing blocks it.
    case radio(RadioBlock?)
    /// The power of the adapter.
    case power
    /// Low Energy on the adapter.
    case lowEnergy
    /// The adapter's setting to accept connections over classic Bluetooth.
    case connectable
    /// The adapter's setting to be visible to searches over classic Bluetooth.
    case discoverable
    /// Secure Simple Pairing on the adapter: pairing without a PIN.
    case secureSimplePairing
    /// The adapter's setting to keep pairings.
    case bondable
    /// The capability CAP_NET_ADMIN of this process.
    case administration
    /// The SDP server of this host, which publishes the records of a listening Holdfast device.
    case discoveryServer(HostFacts.DiscoveryServer)
    /// The result of connecting to the endpoint.
    case connection(ConnectionAttempt)
  }

  /// The state of an examined part.
  package enum State: Sendable, Equatable {
    /// The part is present and usable.
    case ok
    /// The part is missing, and nothing works without it.
    case missing
    /// The part is present, but this user may not use it.
    case forbidden
    /// The part is missing, but only some functions of Holdfast need it.
    case note
  }

  /// The examined part.
  package let topic: Topic
  /// The state of that part.
  package let state: State

  package init(_ topic: Topic, _ state: State) {
    self.topic = topic
    self.state = state
  }
}

/// The result of connecting to an endpoint and waiting for a device's challenge.
package enum ConnectionAttempt: Sendable, Equatable {
  /// A device answered. The id is in hex digits.
  case device(id: String)
  /// The peer does not use the Holdfast protocol.
  case stranger
  /// The peer accepted the connection and sent nothing.
  case silent
  /// The connection failed with a transport error.
  case failed(TransportError)
}

/// The Bluetooth facilities of this host.
package struct HostFacts: Sendable, Equatable {
  /// The state of this host's SDP server.
  package enum DiscoveryServer: Sendable, Equatable {
    /// The server accepts connections from this user.
    case ready
    /// The server does not answer at its socket.
    case absent
    /// This user may not open the server's socket.
    case forbidden
  }

  let hasKernelSupport: Bool
  let hasL2CAP: Bool
  let hasRFCOMM: Bool
  let adapters: [Adapter]
  let isAdministrator: Bool
  let discoveryServer: DiscoveryServer

  package init(
    hasKernelSupport: Bool, hasL2CAP: Bool, hasRFCOMM: Bool, adapters: [Adapter], isAdministrator: Bool,
    discoveryServer: DiscoveryServer
  ) {
    (self.hasKernelSupport, self.hasL2CAP, self.hasRFCOMM, self.adapters, self.isAdministrator, self.discoveryServer) =
      (hasKernelSupport, hasL2CAP, hasRFCOMM, adapters, isAdministrator, discoveryServer)
  }

  /// Examines this host. It needs no privilege and changes nothing.
  ///
  /// - Throws: ``BluetoothError/timedOut``, and ``BluetoothError/malformed`` if the kernel's answer is not a valid one.
  package static func gather() throws(BluetoothError) -> HostFacts {
    do throws(BluetoothError) {
      let management = try ManagementSocket()
      return HostFacts(
        hasKernelSupport: true, hasL2CAP: hasProtocol(.l2cap(psm: nil)), hasRFCOMM: hasProtocol(.rfcomm(channel: nil)),
        adapters: try Adapter.all(), isAdministrator: isAdministrator(management),
        discoveryServer: discoveryServer())
    } catch .unsupported {
      return HostFacts(
        hasKernelSupport: false, hasL2CAP: false, hasRFCOMM: false, adapters: [], isAdministrator: false,
        discoveryServer: .absent)
    }
  }

  private static func hasProtocol(_ port: BluetoothPort) -> Bool {
    (try? OpenFile.bluetoothSocket(port)) != nil
  }

  /// Returns whether this process has CAP_NET_ADMIN. The kernel checks the privilege before it looks for the adapter.
  private static func isAdministrator(_ management: ManagementSocket) -> Bool {
    do throws(BluetoothError) {
      try management.requireEvents(of: 0)
      return true
    } catch { return error != .permissionDenied }
  }

  private static func discoveryServer() -> DiscoveryServer {
    switch (try? OpenFile.unixSocket(framing: .stream))?.connect(toPath: ServiceRecord.serverPath) {
    case 0, EAGAIN: .ready
    case EACCES, EPERM: .forbidden
    default: .absent
    }
  }
}
