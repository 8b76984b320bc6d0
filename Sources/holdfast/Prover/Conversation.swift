import Glibc
import HoldfastAuthenticator
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport

/// A prover's connection to a device. Each message is received first and then answered by a session.
///
/// The session may be made after the first message, which identifies the device.
struct Conversation: ~Copyable {
  private let endpoint: Endpoint
  private var link: DeviceLink
  /// The last message received.
  private(set) var received: [UInt8] = []

  /// Connects to `endpoint`. No message is sent before the device's first one.
  init(at endpoint: Endpoint, timeoutMilliseconds: Int) throws(Failure) {
    self.endpoint = endpoint
    do throws(TransportError) {
      link = try DeviceLink(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    } catch { throw Failure(error, endpoint: endpoint) }
  }

  /// Waits for the device's next message.
  mutating func receive(by deadline: Deadline) throws(Failure) {
    do throws(TransportError) {
      received = try link.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds)
    } catch { throw Failure(error, endpoint: endpoint) }
  }

  /// Waits for the device's first message. If the device has no room, connects again until the deadline, because
  /// nothing was sent yet.
  mutating func receiveGreeting(by deadline: Deadline) throws(Failure) -> DeviceGreeting {
    try receive(by: deadline)
    var first = try greeting()
    while case .verdict(let verdict) = first, verdict.status == .busy, !deadline.hasPassed {
      // Other provers may be waiting too, and the first to ask gets the place.
      _ = poll(nil, 0, Self.pauseMilliseconds)
      do {
        link = try DeviceLink(to: endpoint, timeoutMilliseconds: deadline.remainingMilliseconds)
        try receive(by: deadline)
      } catch { return first }
      first = try greeting()
    }
    return first
  }

  private static let pauseMilliseconds: CInt = 10

  /// Reads the first message of a connection.
  borrowing func greeting() throws(Failure) -> DeviceGreeting {
    do throws(ProverFault) { return try DeviceGreeting(received.span) } catch {
      throw Failure(error, endpoint: endpoint)
    }
  }

  /// Passes the received message to the session and sends its answer.
  mutating func answer(with session: inout Enrolment.Session, by deadline: Deadline) throws(Failure) -> ProverStep {
    let step: ProverStep
    let message = received
    do throws(ProverFault) {
      step = try session.receive(message.span)
    } catch { throw Failure(error, endpoint: endpoint) }
    if case .send = step {
      do throws(TransportError) { try link.connection.send(session.outgoing.bytes, by: deadline) } catch {
        throw Failure(error, endpoint: endpoint)
      }
    }
    return step
  }

  /// Returns the largest packets, in bytes, in each direction; nil if the transport has no such limit.
  func packetLimits() throws(Failure) -> PacketLimits? {
    do throws(TransportError) { return try link.connection.packetLimits() } catch {
      throw Failure(error, endpoint: endpoint)
    }
  }
}

extension Failure {
  /// Creates the failure for a session that ended without a verdict.
  fileprivate init(_ fault: ProverFault, endpoint: Endpoint) {
    switch fault {
    case .malformed:
      self.init(
        .malformed, "the other end does not speak this protocol", hint: "is \(endpoint) a Holdfast device?")
    case .anotherDevice, .anotherKey:
      self.init(
        .malformed, "the device that answers at \(endpoint) is not the one of a moment ago; nothing was sent to it",
        hint: "try again; is there more than one device at that endpoint?")
    case .impostor:
      self.init(
        .impostor, "the other end did not prove that it is the enrolled device",
        hint: "check that \(endpoint) is the right device; do not use this one")
    case .random, .cryptography:
      self.init(.fault, "the cryptographic library or the random source failed")
    }
  }
}

extension ConnectionAttempt {
  /// Connects to `endpoint` and waits for a device's challenge, without proving anything.
  init(to endpoint: Endpoint, timeoutMilliseconds: Int) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    do throws(TransportError) {
      var link = try DeviceLink(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
      self = try ConnectionAttempt.challenge(over: &link, by: deadline)
    } catch { self = .failed(error) }
  }

  private static func challenge(
    over link: inout DeviceLink, by deadline: Deadline
  ) throws(TransportError) -> ConnectionAttempt {
    let message: [UInt8]
    do throws(TransportError) {
      message = try link.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds)
    } catch {
      switch error {
      case .timedOutWaiting: return .silent
      case .timedOutReading, .tooLong, .truncated: return .stranger
      default: throw error
      }
    }
    do throws(EncodingFault) {
      return .device(id: hexadecimal(try Challenge(message.span).deviceID.bytes))
    } catch { return .stranger }
  }
}

extension DeviceInquiry {
  /// Challenges the device and checks its answer. Returns the device's own challenge if the answer is right, otherwise
  /// nil.
  func proveHost(
    _ record: Record, in folder: Authenticator, _ options: AuthenticatorOptions
  ) throws(Failure) -> DeviceChallenge? {
    var random = SystemRandom()
    let challenge = try options.using { () throws(AuthenticatorFault) in
      try folder.challengeDevice(record, random: &random)
    }
    guard let answer = HostAnswer(try ask(UserCommandName.hostCode, [record.user, challenge.digits]).result) else {
      return nil
    }
    do throws(AuthenticatorFault) {
      let isRight = try folder.checkHostCode(answer.code, deviceChallenge: answer.challenge, of: record)
      return isRight ? answer.challenge : nil
    } catch {
      // A device can send any text, even one that is not a code; it counts as a wrong answer.
      guard error == .badQuestion else { throw Failure(error, folder: options.authenticator) }
      return nil
    }
  }
}

/// A device's answer to `host-code`: its challenge and the host code, as two words. It is empty if the device does not
/// know the user.
private struct HostAnswer {
  let challenge: DeviceChallenge
  let code: String

  init?(_ result: [UInt8]) {
    let words = result.split(separator: 0x20, omittingEmptySubsequences: false)
    guard words.count == 2, let challenge = DeviceChallenge(String(decoding: words[0], as: UTF8.self)) else {
      return nil
    }
    self.challenge = challenge
    code = String(decoding: words[1], as: UTF8.self)
  }
}
