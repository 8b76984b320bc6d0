import HoldfastCore
import HoldfastLinux
import HoldfastTransport

extension VectorFile {
  /// Sends the tests that a device judges to a device, and compares its answers.
  ///
  /// The other tests are skipped, with the reason. A test fails if the device does not answer it.
  ///
  /// - Throws: the error of the transport, if there is no device, or if it no longer answers.
  package func replay(at device: inout TargetDevice) throws(TransportError) -> Report {
    var report = Report()
    for group in groups {
      let target: TargetGroup
      let challenge = try device.challenge()
      do throws(VectorFault) { target = try TargetGroup(group, of: self, at: challenge) } catch {
        report.add(error)
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

  /// The token of the first round in the file that has a whole one, which carries the requests.
  fileprivate func carrier(for challenge: Challenge) throws(VectorFault) -> TokenCarrier? {
    for group in groups where group.type == "SessionRound" {
      guard try Parties(group.node).is(challenge) else { continue }
      for test in group.tests {
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
  /// The token is sent in a round.
  case tokens(TokenEncoding)
  /// The request is sealed and sent with this token.
  case requests(TokenCarrier)
  /// The token and the request of a round are sent in another round.
  case rounds

  init(_ group: VectorGroup, of file: VectorFile, at m1: [UInt8]) throws(VectorFault) {
    let challenge: Challenge
    do throws(EncodingFault) { challenge = try Challenge(m1.span) } catch { throw group.node.fault(.wrongValue) }
    switch group.type {
    case "SessionM2", "SessionCompatibility", "ActivationMessage": self = .messages
    case "MeasurementTokenCOSE", "MeasurementTokenJOSE":
      guard try Parties(group.node).is(challenge) else {
        self = .skipped(Self.otherKey)
        return
      }
      let acceptsUnsigned = try group.node.member("acceptUnsigned").flag()
      let acceptsMAC = try group.node.optional("acceptMac")?.flag() ?? false
      if acceptsUnsigned || acceptsMAC {
        self = .skipped("another policy is needed: unsigned tokens, or MACs")
      } else {
        self = .tokens(group.type == "MeasurementTokenCOSE" ? .cose : .jose)
      }
    case "SessionRequest":
      if let carrier = try file.carrier(for: challenge) {
        self = .requests(carrier)
      } else {
        self = .skipped(Self.otherKey)
      }
    case "SessionRound": self = try Parties(group.node).is(challenge) ? .rounds : .skipped(Self.otherKey)
    default: self = .skipped("tests of \(group.type) cannot be sent to a device")
    }
  }

  private static let otherKey = "the device does not have the key of the vectors"

  /// Reads a test.
  func test(_ vector: VectorTest) throws(VectorFault) -> TargetTest {
    switch self {
    case .skipped(let reason): return .skipped(reason)
    case .messages:
      let message = try vector.bytes("message")
      guard 1...Message.maximumByteCount ~= message.count else { return .skipped("no message has that length") }
      return .message(message)
    case .tokens(let encoding):
      let claims = vector.result == .valid ? try vector.node.member("claims") : nil
      if let claims, try claims.member("issuedAt").number() > SystemClock().unixSeconds() ?? 0 {
        return .skipped("the token is issued in the future, which a device with a clock refuses")
      }
      return .token(try TokenCarrier(try vector.bytes("token"), encoding, claims: claims))
    case .requests(let carrier): return .request(try vector.bytes("message"), carrier)
    case .rounds:
      let round = try RoundVector(vector.node)
      return .request(round.request, TokenCarrier(round))
    }
  }
}

extension Parties {
  /// Whether a challenge comes from the device of the group.
  fileprivate func `is`(_ challenge: Challenge) -> Bool {
    challenge.deviceID == deviceID && challenge.keyID == deviceKeyID
  }
}

/// A test that a device judges.
private enum TargetTest {
  case skipped(String)
  case message([UInt8])
  case token(TokenCarrier)
  case request([UInt8], TokenCarrier)

  /// The request that comes with a token under test. No policy names the command, so no device carries it out.
  private static let harmless: [UInt8] = [0xa1, 0x01, 0x6f] + Array("holdfast-vector".utf8)

  /// Has a device judge the test.
  func outcome(at device: inout TargetDevice) throws(TransportError) -> Outcome {
    switch self {
    case .skipped(let reason): return .skipped(reason)
    case .message(let message):
      _ = try device.challenge()
      guard let answer = try device.answer(to: message) else { return .failed("no answer") }
      return Self.status(of: answer) == .malformed ? .refused("malformed") : .accepted
    case .token(let carrier):
      let verdict = try verdict(on: Self.harmless, carrier, at: &device)
      switch verdict {
      case .opened: return .accepted
      case .unsealed(.tokenInvalid), .unsealed(.malformed): return .refused("\(verdict)")
      // The device has opened a token with which nobody can prove.
      case .unsealed(.deviceMismatch) where !carrier.isWhole: return .accepted
      default: return .failed("the device answers \(verdict)")
      }
    case .request(let request, let carrier):
      let verdict = try verdict(on: request, carrier, at: &device)
      switch verdict {
      case .opened: return .accepted
      case .unsealed(.malformed): return .refused("malformed")
      default: return .failed("the device answers \(verdict)")
      }
    }
  }

  private func verdict(
    on request: [UInt8], _ carrier: TokenCarrier, at device: inout TargetDevice
  ) throws(TransportError) -> TargetVerdict {
    let m1 = try device.challenge()
    let round: TargetRound
    do throws(Refusal) { round = try TargetRound(carrier, request: request, m1: m1) } catch { return .none }
    guard let answer = try device.answer(to: round.m2) else { return .none }
    guard let status = Self.status(of: answer) else { return .other }
    return round.opens(answer) ? .opened(status) : .unsealed(status)
  }

  private static func status(of answer: [UInt8]) -> Status? {
    do throws(EncodingFault) { return try VerdictMessage(answer.span).status } catch { return nil }
  }
}

/// A device's answer in a round.
private enum TargetVerdict {
  /// A verdict whose sealed part opens: the device has the token's secrets.
  case opened(Status)
  /// A verdict without a sealed part that opens.
  case unsealed(Status)
  /// A message that is no verdict.
  case other
  /// No answer.
  case none
}
