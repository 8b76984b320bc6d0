import HoldfastCore
import HoldfastTransport

/// A test that a device judges.
enum TargetTest {
  case skipped(String)
  case message([UInt8])
  case frames(TargetFrames)
  case token(TokenCarrier)
  case request([UInt8], TokenCarrier)
  /// A round in whose M2 something is wrong.
  case wrongRound(RoundChange, request: [UInt8], TargetSecrets, TargetIssuer)
  /// The numbers that a device accepts, one after the other, and one under test.
  case numbers([UInt64], UInt64, TargetIssuer)
  /// A message in place of M2, after a round.
  case mail([UInt8], TargetIssuer)
  /// A bulletin that is to be refused, after a round.
  case bulletin([UInt8], TargetIssuer)

  /// The request that comes with a token under test. No policy names the command, so no device carries it out.
  private static let harmless: [UInt8] = [0xa1, 0x01, 0x6f] + Array("holdfast-vector".utf8)

  /// Has a device judge the test.
  func outcome(at device: inout TargetDevice) throws(TransportError) -> Outcome {
    switch self {
    case .skipped(let reason): return .skipped(reason)
    case .message(let message):
      _ = try device.challenge()
      return Self.isTaken(try device.answer(to: message))
    case .frames(let frames): return try frames.outcome(at: &device)
    case .token(let carrier): return try judgedToken(carrier, &device)
    case .request(let request, let carrier):
      let verdict = try verdict(on: request, carrier, at: &device)
      switch verdict {
      case .opened: return .accepted
      case .unsealed(.malformed): return .refused("malformed")
      default: return .failed("the device answers \(verdict)")
      }
    case .wrongRound(let change, let request, let secrets, let issuer):
      // Whatever else the device refuses would be taken for a refusal of what is wrong.
      if device.acceptsRounds[request] == nil {
        device.acceptsRounds[request] = try isAccepted(issuer, &device, request, secrets)
      }
      guard device.acceptsRounds[request] == true else { return .skipped("the device does not accept the right round") }
      guard let carrier = Self.fresh(issuer, secrets) else { return .skipped("no token can be issued") }
      let verdict = try verdict(on: request, carrier, change, at: &device)
      switch verdict {
      case .opened(.accepted, _), .unsealed(.accepted): return .accepted
      case .unsealed(.busy), .unsealed(.internal): return .failed("the device answers \(verdict)")
      case .opened, .unsealed: return .refused("\(verdict)")
      default: return .failed("the device answers \(verdict)")
      }
    case .numbers(let accepted, let number, let issuer):
      return try judgedNumber(number, after: accepted, issuer, &device)
    case .mail(let message, let issuer):
      if let obstacle = try obstacle(to: issuer, &device) { return obstacle }
      return Self.isTaken(try device.answer(toMail: message))
    case .bulletin(let bulletin, let issuer):
      if let obstacle = try obstacle(to: issuer, &device) { return obstacle }
      var message: [UInt8] = []
      MailMessage.encode(.bulletin, bulletin.span, into: &message)
      return Self.isDelivered(try device.answer(toMail: message))
    }
  }

  /// Proves with a fresh token, which permits mail. Returns the outcome if the device takes none; nil if it does.
  private func obstacle(to issuer: TargetIssuer, _ device: inout TargetDevice) throws(TransportError) -> Outcome? {
    if device.takesMail == nil {
      guard try isAccepted(issuer, &device) else { return .skipped(Self.noCommand) }
      var question: [UInt8] = []
      MailMessage.encode(.list, into: &question)
      guard let answer = try device.answer(toMail: question) else { return .failed("no answer to a question for mail") }
      device.takesMail = Self.status(of: answer) != .malformed
    }
    guard device.takesMail == true else { return .skipped("the device takes no mail") }
    return try isAccepted(issuer, &device) ? nil : .skipped(Self.noCommand)
  }

  private func isAccepted(
    _ issuer: TargetIssuer, _ device: inout TargetDevice, _ request: [UInt8] = TargetIssuer.request(),
    _ secrets: TargetSecrets = TargetSecrets()
  ) throws(TransportError) -> Bool {
    guard let carrier = Self.fresh(issuer, secrets) else { return false }
    guard case .opened(.accepted, _) = try verdict(on: request, carrier, at: &device) else {
      return false
    }
    return true
  }

  private static let noCommand = "the device does not carry out status for a fresh token"

  private static func fresh(_ issuer: TargetIssuer, _ secrets: TargetSecrets = TargetSecrets()) -> TokenCarrier? {
    do throws(Refusal) { return try issuer.carrier(secrets) } catch { return nil }
  }

  private func judgedToken(
    _ carrier: TokenCarrier, _ device: inout TargetDevice
  ) throws(TransportError) -> Outcome {
    let verdict = try verdict(on: Self.harmless, carrier, at: &device)
    switch verdict {
    case .opened: return .accepted
    case .unsealed(.tokenInvalid), .unsealed(.malformed): return .refused("\(verdict)")
    // The device has opened a token with which nobody can prove.
    case .unsealed(.deviceMismatch) where !carrier.isWhole: return .accepted
    default: return .failed("the device answers \(verdict)")
    }
  }

  private func judgedNumber(
    _ number: UInt64, after accepted: [UInt64], _ issuer: TargetIssuer, _ device: inout TargetDevice
  ) throws(TransportError) -> Outcome {
    guard let carrier = Self.fresh(issuer) else { return .skipped("no token can be issued") }
    for (index, earlier) in accepted.enumerated() {
      guard
        case .opened(.accepted, false) = try verdict(on: TargetIssuer.request(number: earlier), carrier, at: &device)
      else {
        return index == 0 ? .skipped(Self.noCommand) : .failed("the device does not accept the number \(earlier)")
      }
    }
    let verdict = try verdict(on: TargetIssuer.request(number: number), carrier, at: &device)
    switch verdict {
    case .opened(.accepted, isRepetition: false): return .accepted
    case .opened(_, isRepetition: true): return .refused("a repetition")
    default: return .failed("the device answers \(verdict)")
    }
  }

  private static func isDelivered(_ answer: [UInt8]?) -> Outcome {
    guard let answer, status(of: answer) != .malformed else { return isTaken(answer) }
    guard let result = try? BulletinAnswer(answer.span).result, result != .busy else {
      return .failed("the device does not answer with a result")
    }
    return result == .taken ? .accepted : .refused("\(result)")
  }

  /// Whether an answer says that the message is malformed.
  private static func isTaken(_ answer: [UInt8]?) -> Outcome {
    guard let answer else { return .failed("no answer") }
    return status(of: answer) == .malformed ? .refused("malformed") : .accepted
  }

  private func verdict(
    on request: [UInt8], _ carrier: TokenCarrier, _ change: RoundChange = RoundChange(), at device: inout TargetDevice
  ) throws(TransportError) -> TargetVerdict {
    let m1 = try device.challenge()
    let round: TargetRound
    do throws(Refusal) { round = try TargetRound(carrier, request: request, m1: m1, change: change) } catch {
      return .none
    }
    guard let answer = try device.answer(to: round.m2) else { return .none }
    guard let status = Self.status(of: answer) else { return .other }
    guard let notice = round.notice(in: answer) else { return .unsealed(status) }
    return .opened(status, isRepetition: notice.highestRequestNumber != nil)
  }

  private static func status(of answer: [UInt8]) -> Status? {
    do throws(EncodingFault) { return try VerdictMessage(answer.span).status } catch { return nil }
  }
}

extension TargetTest {
  /// Finds what is wrong in a round, and how the same is wrong in another one.
  init(wrong round: RoundVector, _ parties: Parties, _ issuer: TargetIssuer?) throws(VectorFault) {
    guard let issuer else {
      self = .skipped(TargetReason.noIssuer)
      return
    }
    do throws(Refusal) { _ = try parties.open(round.wholeToken, encoding: round.wholeTokenEncoding) } catch {
      self = .token(try TokenCarrier(round.wholeToken, round.wholeTokenEncoding, claims: nil))
      return
    }
    let right: TargetRound
    do throws(Refusal) {
      right = try TargetRound(
        TokenCarrier(round), request: round.request, m1: round.m1, random: round.proverRandom)
    } catch {
      self = .skipped("the round cannot be made")
      return
    }
    let change: RoundChange
    do throws(EncodingFault) { change = try RoundChange(from: right.m2, to: round.m2) } catch {
      self = .message(round.m2)
      return
    }
    if round.encoding == .reference {
      self = .skipped("a device remembers none of the references")
    } else if !change.isNone {
      self = .wrongRound(change, request: round.request, round.secrets, issuer)
    } else if (try? Request(round.request.span)) == nil {
      self = .request(round.request, TokenCarrier(round))
    } else {
      self = .skipped("its fault is not in M2, or only in the secrets of its token")
    }
  }
}

/// A device's answer in a round.
enum TargetVerdict: CustomStringConvertible {
  /// A verdict whose sealed part opens: the device has the token's secrets. It may say that the request is a repetition.
  case opened(Status, isRepetition: Bool)
  /// A verdict without a sealed part that opens.
  case unsealed(Status)
  /// A message that is no verdict.
  case other
  /// No answer.
  case none

  /// The verdict for a person.
  var description: String {
    switch self {
    case .opened(let status, let isRepetition): "\(status.name), sealed\(isRepetition ? " as a repetition" : "")"
    case .unsealed(let status): "\(status.name), without a seal that opens"
    case .other: "with a message that is no verdict"
    case .none: "with nothing"
    }
  }
}
