import HoldfastCore

extension Status {
  /// The name of the status. Source: docs/protocol.md, Statuses.
  package var name: String { "\(self)" }
}

extension AuditEvent {
  /// The event in one word.
  package var name: String {
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
    case .userLocked: "user-locked"
    case .denied: "denied"
    case .logCut: "log-cut"
    case .parameter: "parameter"
    case .failed(let failure): failure.round > 0 ? "not-carried-out" : "run-cut-off"
    case .policyKeySet: "policy-key"
    case .actuatorEvent: "actuator-event"
    case .bulletinTaken: "bulletin"
    case .receiptRefused: "receipt-refused"
    case .entriesLost: "entries-lost"
    }
  }

  /// How much the event deserves attention.
  package var level: AuditLevel {
    switch self {
    case .round(let round): round.status == .accepted ? .information : .warning
    case .denied, .unproved, .generationFloorMoved, .clockFloorMoved, .logCut, .entriesLost: .warning
    case .policySeen(let digest): digest == nil ? .error : .notice
    case .failed, .receiptRefused: .error
    case .started, .stopped, .parameter, .actuatorEvent: .information
    default: .notice
    }
  }

  /// The other values, with their names.
  package var details: [(String, NamedValue)] {
    switch self {
    case .round(let round): round.details
    case .unproved(let totals): Status.allCases.filter { totals[$0] > 0 }.map { ($0.name, .number(totals[$0])) }
    case .stopped: []
    case .created(let deviceID), .reset(let deviceID): [("device", .word(hexadecimal(deviceID)))]
    case .started(let bootCount): [("start", .number(bootCount))]
    case .issuerTrusted(let keyID), .issuerRemoved(let keyID): [("issuer", .word(hexadecimal(keyID)))]
    case .policySeen(let digest): [("sha256", .word(digest.map { hexadecimal($0) } ?? "none"))]
    case .clockFloorMoved(let from, let to): [("from", .time(from)), ("to", .time(to))]
    case .codeIssued(let purpose, let user):
      [("for", .word(purpose == .activation ? "activation" : "unlock")), ("user", .text(user.description))]
    // The cases are separate because Swift 6.3 crashes on a pattern that binds the same text in several cases.
    case .userActivated(let user): [("user", .text(user.description))]
    case .userAdded(let user): [("user", .text(user.description))]
    case .userUnlocked(let user): [("user", .text(user.description))]
    case .userRemoved(let user): [("user", .text(user.description))]
    case .userLocked(let user, let until): [("user", .text(user.description)), ("until", .time(until))]
    case .denied(let rounds): rounds.details
    case .logCut(let chain): [("last", .number(chain.count)), ("head", .word(hexadecimal(chain.head)))]
    case .parameter(let parameter): parameter.details
    case .failed(let failure): failure.details
    case .policyKeySet(let keyID): [("key", .word(keyID.map { hexadecimal($0) } ?? "none"))]
    case .actuatorEvent(let event): [("round", .number(event.round)), ("text", .text(event.text.description))]
    case .bulletinTaken(let keyID, let audience, let number):
      [
        ("issuer", .word(hexadecimal(keyID))), ("audience", .word(hexadecimal(audience))), ("number", .number(number)),
      ]
    case .receiptRefused(let keyID, let count):
      [("home", .word(hexadecimal(keyID))), ("count", .number(count))]
    case .entriesLost(let count): [("entries", .number(count))]
    case .generationFloorMoved(let keyID, let from, let to):
      [("issuer", .word(hexadecimal(keyID))), ("from", .number(from)), ("to", .number(to))]
    }
  }
}

/// The levels of audit events, as those of syslog, from the one that deserves least attention.
package enum AuditLevel: Int, CaseIterable, Comparable, Sendable {
  /// Normal work: an accepted round, its parameters, a start or an end in order.
  case information
  /// Something that the owner or a user did.
  case notice
  /// Something was denied, a floor was moved, or entries were cut off.
  case warning
  /// A command was not carried out, a policy cannot be used, or a run was cut off.
  case error

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// The name in one word.
  package var name: String { "\(self)" }
}

extension DeniedRounds {
  fileprivate var details: [(String, NamedValue)] {
    var details: [(String, NamedValue)] = [("status", .word(status.name)), ("rounds", .number(count))]
    if let tokenID {
      details.append(("issuer", .word(verifyingKey.map { hexadecimal($0) } ?? "none")))
      details.append(("token", .word(hexadecimal(tokenID))))
    }
    return details
  }
}

extension AuditedParameter {
  fileprivate var details: [(String, NamedValue)] {
    let content: (String, NamedValue) =
      switch self.content {
      case .digest(let digest): ("sha256", .word(hexadecimal(digest)))
      case .text(let text): ("text", .text(text.description))
      }
    return [("round", .number(round)), ("index", .number(UInt64(index))), content]
  }
}

extension AuditedFailure {
  fileprivate var details: [(String, NamedValue)] {
    // Without a round, it is the end of the run before.
    (round > 0 ? [("round", .number(round)), ("reason", .word(reason.name))] : [])
      + [("text", .text(text.description))]
  }
}

extension ActuatorFailure.Reason {
  /// The reason in one word.
  package var name: String {
    switch self {
    case .failed: "failed"
    case .unknownCommand: "unknown-command"
    case .unavailable: "unavailable"
    case .notHandedOver: "not-handed-over"
    case .timedOut: "timed-out"
    case .ended: "ended"
    case .badAnswer: "bad-answer"
    case .refusedByUser: "refused-by-user"
    }
  }
}

extension AuditedRound {
  /// The values of a round, with their names.
  package var details: [(String, NamedValue)] {
    var details: [(String, NamedValue)] = [
      ("status", .word(status.name)), ("command", .text(command.description)),
      ("subject", .text(subject.description)), ("issuer", .word(verifyingKey.map { hexadecimal($0) } ?? "none")),
      ("token", .word(hexadecimal(tokenID))),
    ]
    if let user { details.append(("user", .text(user.description))) }
    guard let origin else { return details }
    if let transport = origin.transport { details.append(("transport", .word(transport.name))) }
    let version = origin.version
    details.append(("version", .word("\(version.major).\(version.minor).\(version.patch)")))
    return details
  }
}

extension RoundTransport {
  /// The name in one word.
  package var name: String {
    switch self {
    case .socket: "socket"
    case .serial: "serial"
    case .l2cap: "l2cap"
    case .rfcomm: "rfcomm"
    case .lowEnergy: "le"
    }
  }
}
