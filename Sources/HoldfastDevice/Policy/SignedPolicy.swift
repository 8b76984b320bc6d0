import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// A policy that its owner numbered and signed, for devices with a policy key.
///
/// The text is a compact JWS (ES256, `typ` `holdfast-policy+jwt`). Its claims are `num` (1 to 2^53 - 1), `iat`, `policy` (the object of
/// `policy.json`) and, optionally, `device`, the id of the only device that it is for; there are no others.
package struct SignedPolicy: Sendable, Equatable {
  /// The number. A later policy has a higher one.
  package let number: UInt64
  /// The policy.
  package let policy: DevicePolicy
  /// The SHA-256 of the text without line ends after it.
  package let digest: Digest

  /// The value of `typ`. No token and no other document has it, so a signature of a policy counts for nothing else.
  package static let type = "holdfast-policy+jwt"
  /// The largest text, in bytes: a policy of 256 KiB, in base64url.
  package static let maximumByteCount = 352 * 1024
  private static let claimNames = ["num", "iat", "policy", "device"]

  /// Checks the signature of a policy, and then reads it.
  ///
  /// - Parameters:
  ///   - text: the compact JWS; line ends after it are ignored.
  ///   - key: the policy key of the device, the only one that counts.
  ///   - device: the id of the device.
  package init(_ text: [UInt8], by key: P256Point, for device: DeviceID) throws(PolicyFault) {
    var text = text
    while let last = text.last, last == 0x0a || last == 0x0d { text.removeLast() }
    let value: JSONValue
    do throws(SignedJSON.Fault) {
      value = try SignedJSON.verify(text, type: Self.type, by: key, byteLimit: Self.maximumByteCount)
    } catch {
      switch error {
      case .malformed, .unexpected: throw .notSigned
      case .anotherKey: throw .anotherKey
      case .notAuthentic: throw .notAuthentic
      }
    }
    let claims = JSONMember(value)
    let member: JSONMember
    var only: DeviceID?
    do throws(JSONMistake) {
      try claims.checkMembers(Self.claimNames)
      number = try claims.required("num").integer(1...maximumInteger)
      _ = try claims.required("iat").integer()
      member = try claims.required("policy")
      if let named = claims.member("device") {
        only = named.value.text.flatMap(fixedBytes(hexadecimal:))
        guard only != nil else { throw named.mistake(.hexadecimal(digitCount: 32)) }
      }
    } catch { throw .unexpected(error) }
    guard only == nil || only == device else { throw .anotherDevice }
    policy = try DevicePolicy(member: member)
    do throws(CryptographyFailure) { digest = try sha256(text.span) } catch { throw .unreadable }
  }

  /// Checks a policy before it is signed.
  ///
  /// - Parameters:
  ///   - json: the text of `policy.json`.
  ///   - number: the number, 1 to 2^53 - 1.
  ///   - device: the only device that the policy is for; nil for all devices with the key.
  ///   - issued: the present time, in Unix seconds.
  /// - Returns: the claims to sign.
  package static func claims(
    of json: [UInt8], number: UInt64, device: DeviceID?, issued: UInt64
  ) throws(PolicyFault) -> JSONValue {
    _ = try DevicePolicy(json: json)
    let policy: JSONValue
    do throws(JSONFault) { policy = try JSONValue(parsing: json, byteLimit: DevicePolicy.maximumByteCount) } catch {
      throw .unreadable
    }
    return .object(
      [("num", .integer(number)), ("iat", .integer(issued)), ("policy", policy)]
        + (device.map { [("device", .string(hexadecimal($0)))] } ?? []))
  }
}

/// The key of an owner who signs the device's policies, and the newest policy that the device has taken.
package struct PolicyTrust: Sendable, Equatable {
  /// The key, an uncompressed point of 65 bytes.
  package let key: P256Point
  /// The number of the newest policy; 0 before the first one.
  package var number: UInt64 = 0
  /// The SHA-256 of the newest policy's text; nil before the first one.
  package var digest: Digest?

  /// Makes the trust in a key, before the first policy.
  package init(key: P256Point) { self.key = key }

  /// Checks that a policy is the newest one or a newer one.
  ///
  /// - Throws: `outdated` for a lower number, and for another policy with the same number.
  package func check(_ policy: SignedPolicy) throws(PolicyFault) {
    guard policy.number > number || (policy.number == number && policy.digest == digest) else {
      throw .outdated(newest: number)
    }
  }
}

/// The part of a device that judges signed policies.
struct PolicySigner: Sendable {
  let ledger: Ledger
  let key: P256Point
  /// Whether a newer policy is recorded before it counts, as a device does that is served. An owner's command only looks.
  let isRecording: Bool

  /// Returns the policy in a text if it counts.
  func policy(_ text: [UInt8]) throws(PolicyFault) -> SignedPolicy {
    let policy = try SignedPolicy(text, by: key, for: ledger.deviceID)
    if isRecording {
      try ledger.take(policy)
    } else {
      let trust: PolicyTrust?
      do throws(LedgerFault) { trust = try ledger.policyTrust() } catch { throw .unrecorded }
      guard let trust, trust.key == key else { throw .anotherKey }
      try trust.check(policy)
    }
    return policy
  }
}
