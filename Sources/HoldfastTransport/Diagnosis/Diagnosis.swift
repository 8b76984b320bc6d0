/// What is there and what is missing for Holdfast on this host, in the order in which one thing needs the other.
public struct Diagnosis: Sendable, Equatable {
  /// The adapter that was looked at.
  public private(set) var adapter: UInt16?
  public private(set) var findings: [Finding] = []

  /// Judges `facts`.
  ///
  /// - Parameters:
  ///   - facts: what this host has; nil where Bluetooth does not matter.
  ///   - endpoint: what is to be reached; nil for anything.
  ///   - attempt: what came of connecting to it; nil where that was not tried.
  public init(_ facts: HostFacts?, for endpoint: Endpoint?, _ attempt: ConnectionAttempt?) {
    adapter = endpoint?.adapter
    if let facts { examine(facts, for: endpoint?.port) }
    if let attempt { findings.append(Finding(.connection(attempt), attempt.state)) }
  }

  /// The worst of it: `missing`, else `forbidden`, else `ok`.
  public var state: Finding.State {
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
  public var port: BluetoothPort? {
    if case .bluetooth(_, let port) = address { port } else { nil }
  }
}

extension BluetoothPort {
  /// Whether this is one of Bluetooth Low Energy.
  public var isLowEnergy: Bool {
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
