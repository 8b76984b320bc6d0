import HoldfastCore
import HoldfastFormats
import HoldfastTransport

/// The behaviour of a device where an answer was due.
package enum Reply: Sendable, Equatable {
  /// The state of the sealed part of M3.
  package enum Seal: Sendable, Equatable {
    /// There is none.
    case absent
    /// It opens with the keys of the round.
    case right
    /// It does not open.
    case wrong
  }

  /// M3. A repetition has the highest request number under its seal: the device did not act again.
  case verdict(Status, Seal, isRepetition: Bool = false)
  /// M1 in place of an answer.
  case challenge
  /// A positive answer to an owner's code: types 22, 24 and 26.
  case granted
  /// Bytes that are no message of the protocol.
  case garbage(byteCount: Int)
  /// The end of the connection.
  case closed
  /// Nothing within the time.
  case silence

  /// The reply for a person.
  package var text: String {
    switch self {
    case .verdict(let status, let seal, let isRepetition):
      let part =
        switch seal {
        case .absent: "without a seal"
        case .right: isRepetition ? "sealed, as a repetition" : "sealed"
        case .wrong: "with a seal that does not open"
        }
      return "\(status.name), \(part)"
    case .challenge: return "another challenge, and no answer"
    case .granted: return "a positive answer to a code"
    case .garbage(let count): return "\(count) bytes that are no message of the protocol"
    case .closed: return "the end of the connection"
    case .silence: return "no answer in time"
    }
  }

  /// Whether the reply is a verdict whose seal opens: the device has the secrets of the token.
  var isSealed: Bool { if case .verdict(_, .right, _) = self { true } else { false } }

  /// Whether the reply refuses with one of `statuses`, each with or without a seal as the protocol requires. The end of the
  /// connection refuses, too.
  func refuses(with statuses: [Status]) -> Bool {
    guard case .verdict(let status, let seal, _) = self else { return self == .closed }
    guard statuses.contains(status) else { return false }
    return seal == (status.needsAuthentication ? .right : .absent)
  }
}

extension Reply {
  /// Reads an answer for which there are no keys, so that no seal opens.
  init(_ heard: Heard) {
    guard case .message(let bytes) = heard else {
      self = heard == .closed ? .closed : .silence
      return
    }
    if (try? Challenge(bytes.span)) != nil {
      self = .challenge
    } else if (try? ActivationReply(bytes.span)) != nil {
      self = .granted
    } else if let verdict = try? VerdictMessage(bytes.span) {
      self = .verdict(verdict.status, verdict.isSealed ? .wrong : .absent)
    } else {
      self = .garbage(byteCount: bytes.count)
    }
  }
}

/// The next message on a connection, or its absence.
enum Heard: Equatable {
  case message([UInt8])
  case closed
  case silence

  init(_ error: TransportError) {
    switch error {
    case .timedOutWaiting, .timedOutReading: self = .silence
    // Its bytes are never copied; one byte stands for them.
    case .tooLong, .emptyFrame: self = .message([0])
    default: self = .closed
    }
  }
}
