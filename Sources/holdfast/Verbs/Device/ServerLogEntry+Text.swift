import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastTransport

extension ServerLogEntry {
  /// Returns the log line for this entry, or nil if it has none.
  ///
  /// - Parameters:
  ///   - quiet: Whether single rounds and strangers are omitted.
  ///   - device: The id of the device.
  func line(quiet: Bool, device: DeviceID) -> LogLine? {
    switch self {
    case .round(let entry): quiet ? nil : entry.line(device: device)
    case .answered(let entry): quiet ? nil : entry.line(device: device)
    case .strangers(let totals): quiet ? nil : totals.line(device: device)
    case .notice(let notice): notice.line(quiet: quiet)
    }
  }
}

extension RoundEntry {
  fileprivate func line(device: DeviceID) -> LogLine {
    var line = LogLine(event: judged.event?.name ?? "round", sentence: sentence)
    line.members = [
      ("connection", .number(judged.connection)), ("device_id", .word(hexadecimal(device))),
      ("status", .word(judged.status.name)),
    ]
    if let round = judged.round {
      line.fields = [("command", .text(round.command.description)), ("subject", .text(round.subject.description))]
      line.members += [
        ("issuer", .word(round.verifyingKey.map { hexadecimal($0) } ?? "none")),
        ("token", .word(hexadecimal(round.tokenID))),
      ]
    }
    if let user = judged.event?.user { line.fields.append(("user", .text(user.description))) }
    if let peer { line.add(peer) }
    line.addShort(device)
    if count > 1 { line.members.append(("times", .number(count))) }
    if isOfForgottenToken { line.members.append(("asked_for_whole_token", .flag(true))) }
    if judged.round?.isRepetition ?? false { line.members.append(("repeated", .flag(true))) }
    if let unixSeconds { line.fields.append(("last", .time(unixSeconds))) }
    return line
  }

  private var sentence: String {
    var text = "connection \(judged.connection): \(judged.status.name)"
    let isRepetition = judged.round?.isRepetition ?? false
    if isRepetition {
      text += ", for a request that was accepted before; it was not carried out again"
    } else if judged.status == .internal {
      text += judged.internalText
    }
    switch judged.event {
    case .userActivated: text += ", a user was activated"
    case .userUnlocked: text += ", a user was unlocked"
    default: break
    }
    if count > 1 { text += ", \(count) times" }
    return isOfForgottenToken ? text + ", after the whole token was asked for" : text
  }
}

extension JudgedRound {
  /// The reason for an internal error of the device, as far as it is known.
  fileprivate var internalText: String {
    round?.status == .accepted
      ? ", because the command could not be carried out" : ", because the ledger or its disk failed"
  }
}

extension AnsweredEntry {
  fileprivate func line(device: DeviceID) -> LogLine {
    var line = LogLine(event: "answered", sentence: "connection \(connection): \(status.name)")
    line.members = [
      ("connection", .number(connection)), ("device_id", .word(hexadecimal(device))), ("status", .word(status.name)),
    ]
    if let peer { line.add(peer) }
    line.addShort(device)
    return line
  }
}

extension StrangerTotals {
  fileprivate func line(device: DeviceID) -> LogLine {
    let counts = Status.allCases.filter { answers[$0] > 0 }.map { ($0.name, answers[$0]) }
    var parts = counts.map { "\($1) \($0)" }
    if sentAwayCount > 0 { parts.append("\(sentAwayCount) turned away, because all places are taken") }
    if displacedCount > 0 { parts.append("\(displacedCount) ended to make room, because all places are taken") }
    if faultCount > 0 { parts.append("\(faultCount) not served, because memory, descriptors or disk space ran out") }
    if otherDenialCount > 0 { parts.append("\(otherDenialCount) rounds denied to other tokens") }
    var text = "without proof: " + parts.joined(separator: ", ")
    if connectionCount > 1 { text += "; on \(connectionCount) connections" }
    if let milliseconds { text += "; in \(milliseconds / 1000) s" }
    var line = LogLine(event: "unproved", sentence: text)
    line.members = [
      ("device_id", .word(hexadecimal(device))), ("connections", .number(connectionCount)),
      ("sent_away", .number(sentAwayCount)), ("displaced", .number(displacedCount)),
      ("not_served", .number(faultCount)),
      ("denied_to_further_tokens", .number(otherDenialCount)),
    ]
    if let milliseconds { line.members.append(("seconds", .number(milliseconds / 1000))) }
    line.members += counts.map { ($0, .number($1)) }
    if let peer { line.add(peer) }
    line.addShort(device)
    return line
  }
}

extension LogLine {
  mutating func add(_ peer: Peer) {
    fields.append(("peer", .text(peer.text)))
    guard case .process(let userID, let processID) = peer else { return }
    members += [("uid", .number(UInt64(userID))), ("pid", .number(UInt64(max(processID, 0))))]
  }

  /// Adds the first eight digits of the device id, which suffice for people. Programs get the whole id.
  fileprivate mutating func addShort(_ device: DeviceID) {
    fields.append(("device", .word(String(hexadecimal(device).prefix(8)))))
  }
}

extension Peer {
  var text: String {
    switch self {
    case .process(let userID, let processID): "uid \(userID), pid \(processID)"
    case .bluetooth(let address): address.description
    }
  }
}

extension AuditEvent {
  fileprivate var user: BoundedText<32>? {
    switch self {
    case .round(let round): round.user
    case .userActivated(let user): user
    case .userUnlocked(let user): user
    default: nil
    }
  }
}

extension ServerNotice {
  /// Returns the log line for a notice about the server itself, or nil if it has none.
  func line(quiet: Bool) -> LogLine? {
    switch self {
    case .policy(let reading):
      let isSound = reading.fault == nil && reading.warnings.isEmpty
      if isSound && quiet { return nil }
      return LogLine(
        event: "policy", sentence: "\(isSound ? "" : "warning: ")policy: \(reading.summary)\(reading.warnings)",
        members: reading.fault.map { [("code", .word($0.code.row.identifier))] } ?? [])
    case .unknownToActuator(let connection, let command):
      return LogLine(
        event: "warning",
        sentence: "warning: policy allows \(command.description.quoted), but the actuator does not know that command",
        members: [("connection", .number(connection)), ("command", .text(command.description))])
    case .commandFailed(let connection, let command, let failure):
      var line = LogLine(
        event: "not-carried-out", sentence: "connection \(connection): the command failed: \(failure.reason.name)")
      line.members = [("connection", .number(connection)), ("reason", .word(failure.reason.name))]
      line.fields = [("command", .text(command.description)), ("text", .text(failure.text.description))]
      return line
    case .bulletin(let connection, let issuer, let audience, let number):
      if quiet { return nil }
      return LogLine(
        event: "bulletin", sentence: "connection \(connection): bulletin \(number) taken",
        members: [
          ("connection", .number(connection)), ("issuer", .word(hexadecimal(issuer))),
          ("audience", .word(hexadecimal(audience))), ("number", .number(number)),
        ])
    case .receiptRefused(let connection, let home, let count):
      return LogLine(
        event: "receipt-refused",
        sentence: "warning: connection \(connection): a receipt for the audit log up to entry \(count) contradicts it",
        members: [
          ("connection", .number(connection)), ("home", .word(hexadecimal(home))), ("count", .number(count)),
        ])
    case .ledgerFault:
      return LogLine(event: "warning", sentence: "warning: the last totals could not be written to the audit log")
    case .auditLogNearlyFull(let kept, let bound):
      return LogLine(
        event: "audit-log-nearly-full",
        sentence: "warning: the audit log has \(kept) of \(bound) entries; the device will drop the oldest ones",
        members: [("entries", .number(kept)), ("bound", .number(bound))])
    case .connected, .disconnected, .displaced, .busy, .fault, .acceptFault, .judged, .answered: return nil
    }
  }
}

extension PolicyReading {
  /// The settings that weaken the device; the log states them at every start.
  fileprivate var warnings: String {
    var text = ""
    if policy.acceptsUnsigned {
      text += "; WARNING: unsigned tokens are accepted, so anyone who has the device's public key can create one"
    }
    if policy.acceptsDevelopment {
      text += "; WARNING: tokens of the app development are accepted, which any program with the development key gets"
    }
    if policy.allowsCompatibility {
      text +=
        "; WARNING: compatibility rounds are allowed, and an attacker who captures one before it arrives can change its command"
    }
    return text
  }
}
