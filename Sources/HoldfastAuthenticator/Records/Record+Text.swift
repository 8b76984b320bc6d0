import HoldfastCore
import HoldfastFormats

extension Record {
  /// The record as a JSON object, as `otp list --json` shows it.
  package var json: JSONValue {
    func number(_ value: UInt64?) -> JSONValue { value.map { .integer($0) } ?? .null }
    return .object(
      [
        ("user", .string(user)), ("index", .integer(UInt64(index))), ("purpose", .string(purpose.name)),
        ("issuer", .string(issuer)), ("device_id", deviceID.map { .string(hexadecimal($0)) } ?? .null),
        ("method", .string(method.description)),
        ("protection", .string(protection.isEmpty ? "none" : protection.names.joined(separator: "+"))),
        ("requires", .array(protection.names.map { .string($0) })),
        ("next_counter", method.isCounted ? .integer(nextCounter) : .null),
        ("acknowledged_counter", method.isCounted ? .integer(acknowledgedCounter) : .null),
        ("clock_ahead_seconds", .integer(UInt64(max(clockOffsetSeconds, 0)))),
        ("clock_behind_seconds", .integer(UInt64(max(-clockOffsetSeconds, 0)))),
        ("last_time_step", number(lastTimeStep)), ("last_synchronised", number(lastSynchronised)),
        ("look_ahead_window", number(lookAheadWindow)), ("confirmed", .bool(isConfirmed)),
        ("change_open", .bool(isChangeOpen)), ("interrupted", .bool(isInterrupted)),
        ("seal_field_limit", number(sealFieldByteLimit.map(UInt64.init))),
      ] + demand.members)
  }
}

extension ProtectionDemand? {
  /// The members about a demand of the device's owner.
  package var members: [(String, JSONValue)] {
    [
      ("demand_pin_length", self?.pinLength.map { .integer(UInt64($0)) } ?? .null),
      ("demand_key", .bool(self?.needsKey == true)),
    ]
  }
}

extension RecordPurpose {
  /// The name of the purpose in JSON.
  package var name: String {
    switch self {
    case .otp: "otp"
    case .seal: "seal"
    case .host: "host"
    }
  }
}

extension ProtectionInputs {
  private static let named: [(input: ProtectionInputs, name: String, text: String)] = [
    (.pin, "pin", "PIN"), (.key, "key", "key"), (.host, "host", "bound to a host"),
  ]

  /// The names of the inputs in JSON.
  package var names: [String] { Self.named.filter { contains($0.input) }.map(\.name) }

  /// The inputs in words.
  package var text: String {
    let texts = Self.named.filter { contains($0.input) }.map(\.text)
    return ((isDisjoint(with: [.pin, .key]) ? ["no PIN"] : []) + texts).joined(separator: ", ")
  }
}

extension CodeMethod {
  /// The method in the notation of the standards.
  package var description: String {
    switch self {
    case .hotp(let hash, let length): "HOTP \(hash.name) \(length.digits) digits"
    case .totp(let hash, let length, let period): "TOTP \(hash.name) \(length.digits) digits \(period) s"
    case .ocra(let suite): suite.text.description
    }
  }
}

extension OATHHash {
  /// The hash's name in options and suites.
  package var name: String {
    switch self {
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha512: "SHA512"
    }
  }
}
