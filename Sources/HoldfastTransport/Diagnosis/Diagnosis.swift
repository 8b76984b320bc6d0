import Glibc

/// What is there and what is missing for Holdfast on this host, in the order in which one thing needs the other.
package struct Diagnosis: Sendable, Equatable {
  /// The adapter that was looked at.
  package private(set) var adapter: UInt16?
  package private(set) var findings: [Finding] = []

  /// Judges `facts`.
  ///
  /// - Parameters:
  ///   - facts: what this host has; nil where Bluetooth does not matter.
  ///   - endpoint: what is to be reached; nil for anything.
  ///   - attempt: what came of connecting to it; nil where that was not tried.
  package init(_ facts: HostFacts?, for endpoint: Endpoint?, _ attempt: ConnectionAttempt?) {
    adapter = endpoint?.adapter
    if let facts { examine(facts, for: endpoint?.port) }
    if let attempt { findings.append(Finding(.connection(attempt), attempt.state)) }
  }

  /// The worst of it: `missing`, else `forbidden`, else `ok`.
  package var state: Finding.State {
    for state in [Finding.State.missing, .forbidden] where findings.contains(where: { $0.state == state }) {
      return state
    }
    return .ok
  }

  private mutating func examine(_ facts: HostFacts, for port: BluetoothPort?) {
    add(.kernel, facts.hasKernelSupport)
    guard facts.hasKernelSupport else { return }
    add(.l2cap, facts.hasL2CAP)
    if port.map({ $0.local == .rfcomm(channel: nil) }) ?? true { add(.rfcomm, facts.hasRFCOMM) }
    let chosen = Adapter.chosen(adapter, of: facts.adapters)
    add(.adapter, chosen != nil)
    if let chosen { examine(chosen, for: port) }
    add(.administration, facts.isAdministrator, otherwise: .note)
    guard port?.isLowEnergy != true else { return }
    // Fixed numbers work without it.
    add(.discoveryServer(facts.discoveryServer), facts.discoveryServer == .ready, otherwise: .note)
  }

  private mutating func examine(_ adapter: Adapter, for port: BluetoothPort?) {
    self.adapter = adapter.number
    add(.radio(adapter.block), adapter.block == nil)
    add(.power, adapter.settings.contains(.powered))
    if port?.isLowEnergy ?? true {
      add(.lowEnergy, adapter.settings.contains(.lowEnergy), otherwise: port == nil ? .note : .missing)
    }
    if port?.isLowEnergy != true {
      add(.connectable, adapter.settings.contains(.connectable), otherwise: .note)
      add(.discoverable, adapter.settings.contains(.discoverable), otherwise: .note)
      add(.secureSimplePairing, adapter.settings.contains(.secureSimplePairing), otherwise: .note)
    }
    add(.bondable, adapter.settings.contains(.bondable), otherwise: .note)
  }

  private mutating func add(_ topic: Finding.Topic, _ isFulfilled: Bool, otherwise state: Finding.State = .missing) {
    findings.append(Finding(topic, isFulfilled ? .ok : state))
  }
}

extension Endpoint {
  /// The Bluetooth port; nil for other transports.
  package var port: BluetoothPort? {
    if case .bluetooth(_, let port) = address { port } else { nil }
  }
}

extension BluetoothPort {
  /// Whether this is one of Bluetooth Low Energy.
  package var isLowEnergy: Bool {
    if case .lowEnergy = self { true } else { false }
  }
}

extension ConnectionAttempt {
  fileprivate var state: Finding.State {
    switch self {
    case .device: .ok
    case .failed(.permissionDenied): .forbidden
    case .stranger, .silent, .failed: .missing
    }
  }
}

/// One thing that was looked at, and how it is.
package struct Finding: Sendable, Equatable {
  package enum Topic: Sendable, Equatable {
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

  package enum State: Sendable, Equatable {
    case ok
    /// Nothing works without it.
    case missing
    /// It is there, and this user may not use it.
    case forbidden
    /// Only part of what Holdfast does takes it.
    case note
  }

  /// What was looked at.
  package let topic: Topic
  /// How it is.
  package let state: State

  init(_ topic: Topic, _ state: State) {
    self.topic = topic
    self.state = state
  }
}

/// What came of connecting to an endpoint and waiting for a device's challenge.
package enum ConnectionAttempt: Sendable, Equatable {
  /// A device answered; its id as hex digits.
  case device(id: String)
  /// Somebody answered who does not speak the protocol.
  case stranger
  /// Somebody took the connection and said nothing.
  case silent
  case failed(TransportError)
}

/// What this host has of Bluetooth.
package struct HostFacts: Sendable, Equatable {
  package enum DiscoveryServer: Sendable, Equatable {
    case ready
    case absent
    /// Its socket is not for this user.
    case forbidden
  }

  let hasKernelSupport: Bool
  let hasL2CAP: Bool
  let hasRFCOMM: Bool
  let adapters: [Adapter]
  let isAdministrator: Bool
  let discoveryServer: DiscoveryServer

  /// Looks at this host. It takes no privilege and changes nothing.
  ///
  /// - Throws: ``BluetoothError/timedOut``, ``BluetoothError/malformed`` where the kernel does not answer as it should.
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

  /// The kernel looks at the privilege first, then at whether there is such an adapter.
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
