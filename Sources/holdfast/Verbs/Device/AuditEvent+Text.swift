import HoldfastCore
import HoldfastDevice
import HoldfastKeys

extension AuditEvent {
  /// What happened, in one word.
  var name: String {
    switch self {
    case .round(let round): round.isCompatibility ? "compatibility-round" : "round"
    case .unproved: "unproved"
    case .created: "created"
    case .started: "started"
    case .stopped: "stopped"
    case .issuerTrusted: "issuer-trusted"
    case .issuerRemoved: "issuer-removed"
    case .policySeen: "policy"
    case .clockFloorMoved: "clock-floor-moved"
    case .generationFloorMoved: "generation-floor-moved"
    case .reset: "reset"
    }
  }

  /// The rest, as names and values.
  var details: [(String, String)] {
    switch self {
    case .round(let round):
      [
        ("status", round.status.name), ("command", printable(Array(round.command.bytes))),
        ("subject", printable(Array(round.subject.bytes))),
        ("issuer", round.verifyingKey.map { hexadecimal($0) } ?? "none"), ("token", hexadecimal(round.tokenID)),
      ]
    case .unproved(let totals): totals.map { ($0.status.name, "\($0.count)") }
    case .stopped: []
    case .created(let deviceID), .reset(let deviceID): [("device", hexadecimal(deviceID))]
    case .started(let bootCount): [("start", "\(bootCount)")]
    case .issuerTrusted(let keyID), .issuerRemoved(let keyID): [("issuer", hexadecimal(keyID))]
    case .policySeen(let digest): [("sha256", digest.map { hexadecimal($0) } ?? "none")]
    case .clockFloorMoved(let from, let to): [("from", "\(from)"), ("to", "\(to)")]
    case .generationFloorMoved(let keyID, let from, let to):
      [("issuer", hexadecimal(keyID)), ("from", "\(from)"), ("to", "\(to)")]
    }
  }
}
