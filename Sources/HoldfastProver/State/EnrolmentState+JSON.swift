import HoldfastFormats

extension EnrolmentState {
  /// Returns the state as an object: the device, the state of its enrolment, the remaining validity, and the issuer's report,
  /// whose members are null if there is none.
  ///
  /// - Parameter text: returns the text for an enrolment that cannot be used.
  package func json(_ text: (StateFolderFault) -> String) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("device_id", .string(hexadecimal(entry.device))), ("state", .string(validity.rawValue)),
      ("seconds_left", secondsLeft.map { .integer($0) } ?? .null), ("old_layout", .bool(entry.isOfOldLayout)),
    ]
    if case .success(let enrolment) = enrolment {
      members += [
        ("kid", .string(hexadecimal(enrolment.descriptor.keyID))),
        ("encoding", .string(enrolment.encoding == .jose ? "jose" : "cose")),
        ("token_bytes", .integer(UInt64(enrolment.token.count))),
        ("remembered", .bool(entry.folder.isRemembered(enrolment.token))),
      ]
    }
    members.append(("service_address", service.map { .string($0.description) } ?? .null))
    members += report?.json.members ?? IssuanceReport.names.map { ($0, .null) }
    members += [
      ("offline", offlineLimit?.json ?? .null),
      (
        "settings",
        settings.map {
          .object([("type", .string($0.kind.rawValue)), ("bytes", .integer(UInt64($0.bytes.count)))])
        } ?? .null
      ),
      ("compliance", .array(complianceFindings.map(\.json))),
    ]
    if case .failure(let fault) = enrolment { members.append(("error", .string(text(fault)))) }
    return .object(members)
  }
}

extension OfflineLimit {
  /// The limit as an object.
  package var json: JSONValue {
    .object([
      ("seconds", .integer(seconds)), ("until", .integer(until)), ("seconds_left", .integer(secondsLeft)),
    ])
  }
}

extension ComplianceFinding {
  /// The finding as an object.
  package var json: JSONValue {
    .object([
      ("rule", rule.json), ("version", version.map { .string($0.text) } ?? .null),
      ("action", .string(action.rawValue)),
    ])
  }
}
