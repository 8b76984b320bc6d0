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
    case .codeIssued: "code-issued"
    case .userActivated: "user-activated"
    case .userAdded: "user-added"
    case .userUnlocked: "user-unlocked"
    case .userRemoved: "user-removed"
    }
  }

  /// The rest, as names and values.
  var details: [(String, String)] {
    switch self {
    case .round(let round): round.details
    case .unproved(let totals): Status.allCases.filter { totals[$0] > 0 }.map { ($0.name, "\(totals[$0])") }
    case .stopped: []
    case .created(let deviceID), .reset(let deviceID): [("device", hexadecimal(deviceID))]
    case .started(let bootCount): [("start", "\(bootCount)")]
    case .issuerTrusted(let keyID), .issuerRemoved(let keyID): [("issuer", hexadecimal(keyID))]
    case .policySeen(let digest): [("sha256", digest.map { hexadecimal($0) } ?? "none")]
    case .clockFloorMoved(let from, let to): [("from", "\(from)"), ("to", "\(to)")]
    case .codeIssued(let purpose, let user):
      [("for", purpose == .activation ? "activation" : "unlock"), ("user", user.description)]
    // One by one: Swift 6.3 crashes on a pattern that binds the same text in several cases.
    case .userActivated(let user): [("user", user.description)]
    case .userAdded(let user): [("user", user.description)]
    case .userUnlocked(let user): [("user", user.description)]
    case .userRemoved(let user): [("user", user.description)]
    case .generationFloorMoved(let keyID, let from, let to):
      [("issuer", hexadecimal(keyID)), ("from", "\(from)"), ("to", "\(to)")]
    }
  }
}

extension AuditedRound {
  fileprivate var details: [(String, String)] {
    var details = [
      ("status", status.name), ("command", command.description),
      ("subject", subject.description), ("issuer", verifyingKey.map { hexadecimal($0) } ?? "none"),
      ("token", hexadecimal(tokenID)),
    ]
    if let user { details.append(("user", user.description)) }
    return details
  }
}
