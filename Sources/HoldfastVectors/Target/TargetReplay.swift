import HoldfastCore
import HoldfastLinux
import HoldfastTransport

extension VectorFile {
  /// Sends the tests that a device judges to a device, and compares its answers.
  ///
  /// The other tests are skipped, with the reason. A test fails if the device does not answer it.
  ///
  /// - Parameters:
  ///   - policy: the tokens that the device's policy accepts.
  ///   - issuer: the issuer whose private key is known; without it, the tests that need fresh tokens are skipped.
  /// - Throws: the error of the transport, if there is no device, or if it no longer answers.
  package func replay(
    at device: inout TargetDevice, accepting policy: TargetPolicy, issuer: TargetIssuer?
  ) throws(TransportError) -> Report {
    var report = Report(on: self)
    for group in groups {
      let target: TargetGroup
      let challenge = try device.challenge()
      do throws(VectorFault) {
        target = try TargetGroup(group, of: self, at: challenge, accepting: policy, issuer: issuer)
      } catch {
        report.add(error.inGroup(of: group.tests))
        continue
      }
      for vector in group.tests {
        let test: TargetTest
        do throws(VectorFault) { test = try target.test(vector) } catch {
          report.add(error.inTest(vector.id))
          continue
        }
        report.add(try test.outcome(at: &device), of: vector)
      }
    }
    return report
  }

  /// The token of the first valid round in the file that has a whole one, which carries the requests.
  fileprivate func carrier(for challenge: Challenge) throws(VectorFault) -> TokenCarrier? {
    for group in groups where group.type == "SessionRound" {
      guard try Parties(group.node).is(challenge) else { continue }
      for test in group.tests where test.result == .valid {
        let round = try RoundVector(test.node)
        if round.encoding != .reference { return TokenCarrier(round) }
      }
    }
    return nil
  }
}

/// The way in which a device judges the tests of a group.
private enum TargetGroup {
  /// No device judges them, or this one cannot, for this reason.
  case skipped(String)
  /// The message is sent as it is, and must be answered as malformed if it is invalid.
  case messages
  /// The bytes are sent as they are.
  case frames(isLine: Bool)
  /// The token is sent in a round.
  case tokens(TokenEncoding)
  /// The request is sealed and sent with this token.
  case requests(TokenCarrier)
  /// The token and the request of a round, or what is wrong in its M2, are sent in another round.
  case rounds(Parties, TargetIssuer?)
  /// Requests with these numbers are sent, one after the other, with a fresh token.
  case numbers(TargetIssuer)
  /// The message is sent after a round, in place of M2.
  case mail(TargetIssuer)
  /// The bulletin is delivered after a round, if it is to be refused.
  case bulletins(TargetIssuer)

  init(
    _ group: VectorGroup, of file: VectorFile, at m1: [UInt8], accepting policy: TargetPolicy, issuer: TargetIssuer?
  ) throws(VectorFault) {
    let challenge: Challenge
    do throws(EncodingFault) { challenge = try Challenge(m1.span) } catch { throw group.node.fault(.wrongValue) }
    switch group.type {
    case "SessionM2", "SessionCompatibility", "ActivationMessage": self = .messages
    case "Frames": self = .frames(isLine: try group.node.member("isLine").flag())
    case "MeasurementTokenCOSE", "MeasurementTokenJOSE":
      self = try Self.tokens(group, at: challenge, accepting: policy)
    case "SessionRequest":
      if let carrier = try file.carrier(for: challenge) {
        self = .requests(carrier)
      } else {
        self = .skipped(TargetReason.otherKey)
      }
    case "SessionRound":
      let parties = try Parties(group.node)
      self = parties.is(challenge) ? .rounds(parties, issuer) : .skipped(TargetReason.otherKey)
    case "RequestNumber": self = Self.group(of: issuer, at: challenge) { .numbers($0) }
    case "BulletinMessage", "AuditMail": self = Self.group(of: issuer, at: challenge) { .mail($0) }
    case "Bulletin": self = Self.group(of: issuer, at: challenge) { .bulletins($0) }
    default: self = .skipped(TargetReason.forType(group.type))
    }
  }

  private static func tokens(
    _ group: VectorGroup, at challenge: Challenge, accepting policy: TargetPolicy
  ) throws(VectorFault) -> TargetGroup {
    guard try Parties(group.node).is(challenge) else { return .skipped(TargetReason.otherKey) }
    let acceptsUnsigned = try group.node.member("acceptUnsigned").flag()
    let acceptsMAC = try group.node.optional("acceptMac")?.flag() ?? false
    guard acceptsUnsigned == policy.acceptsUnsigned, acceptsMAC == policy.acceptsMAC else {
      let needed: TargetPolicy = acceptsUnsigned ? .unsigned : acceptsMAC ? .mac : .signed
      return .skipped("the tokens are for a device with another policy: --accepts \(needed.rawValue)")
    }
    return .tokens(group.type == "MeasurementTokenCOSE" ? .cose : .jose)
  }

  private static func group(
    of issuer: TargetIssuer?, at challenge: Challenge, _ group: (TargetIssuer) -> TargetGroup
  ) -> TargetGroup {
    guard let issuer else { return .skipped(TargetReason.noIssuer) }
    guard challenge.deviceID == issuer.deviceID, challenge.keyID == issuer.deviceKeyID else {
      return .skipped(TargetReason.otherKey)
    }
    return group(issuer)
  }

  /// Reads a test.
  func test(_ vector: VectorTest) throws(VectorFault) -> TargetTest {
    switch self {
    case .skipped(let reason): return .skipped(reason)
    case .messages:
      let message = try vector.bytes("message")
      guard 1...Message.maximumByteCount ~= message.count else { return .skipped("no message has that length") }
      return .message(message)
    case .frames(let isLine): return .frames(try TargetFrames(vector, isLine: isLine))
    case .tokens(let encoding):
      let claims = vector.result == .valid ? try vector.node.member("claims") : nil
      if let claims, try claims.member("issuedAt").number() > SystemClock().unixSeconds() ?? 0 {
        return .skipped("the token is issued in the future, which a device with a clock refuses")
      }
      return .token(try TokenCarrier(try vector.bytes("token"), encoding, claims: claims))
    case .requests(let carrier): return .request(try vector.bytes("message"), carrier)
    case .rounds(let parties, let issuer):
      let round = try RoundVector(vector.node)
      guard vector.result == .invalid else { return .request(round.request, TokenCarrier(round)) }
      return try TargetTest(wrong: round, parties, issuer)
    case .numbers(let issuer):
      let accepted = try vector.node.member("accepted").elements().map { (node) throws(VectorFault) in
        try node.number()
      }
      guard try vector.node.member("clockFloor").number() < vector.node.member("expires").number() else {
        return .skipped("the token has expired, and a device's clock cannot be set from outside")
      }
      return .numbers(accepted, try vector.node.member("number").number(), issuer)
    case .mail(let issuer):
      let message = try vector.bytes("message")
      guard 1...Message.maximumByteCount ~= message.count else { return .skipped("no message has that length") }
      return .mail(message, issuer)
    case .bulletins(let issuer):
      guard vector.result == .invalid else { return .skipped("a device would keep what the bulletin says") }
      let bulletin = try vector.bytes("bulletin")
      guard bulletin.count <= Bulletin.maximumByteCount else { return .skipped("no message has that length") }
      return .bulletin(bulletin, issuer)
    }
  }
}

extension Parties {
  /// Whether a challenge comes from the device of the group.
  fileprivate func `is`(_ challenge: Challenge) -> Bool {
    challenge.deviceID == deviceID && challenge.keyID == deviceKeyID
  }
}

/// The reasons why the tests of some types are not sent to a device.
enum TargetReason {
  static let otherKey = "the device does not have the key of the vectors"
  static let noIssuer = "no file has the issuer's private key: add session_test.json"

  /// Returns the reason for a type of groups that is never sent.
  static func forType(_ type: String) -> String {
    let reason: String =
      switch type {
      case "SessionM1", "SessionM3", "SessionReply", "ActivationReply", "ActivationGrant", "UserSyncResult",
        "UserStateResult", "HostCodeResult", "BulletinAnswer", "AuditPageAnswer", "AuditPage", "AuditEntry",
        "SealRequest":
        "a device writes it and never reads it"
      case "Proof": "its nonce follows from a challenge, which cannot be set from outside"
      case "ActivationAtDevice", "UnlockingAtDevice":
        "the device's challenge, fresh key and code cannot be set from outside"
      case "HOTP", "TOTP", "OCRA", "OCRASuite", "Seal", "SealQuestion":
        "the secret, the time and the position of a user's codes cannot be set from outside"
      case "AuditReceipt": "the home of the device's log, and the log, cannot be set from outside"
      case "BulletinState", "BulletinGroup": "it follows from what the owner and bulletins have told a device"
      case "FirmwareImage": "a device's flash cannot be set from outside"
      case "ActuatorCommandsCBOR", "ActuatorCommandsJSON", "ActuatorAnswerCBOR", "ActuatorAnswerJSON",
        "ActuatorCommand":
        "an actuator is at another endpoint"
      default: "no device reads it"
      }
    return "\(type): \(reason)"
  }
}
