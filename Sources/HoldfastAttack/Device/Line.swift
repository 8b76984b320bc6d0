import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// The adversary's end of one connection to a device. Every wait has a deadline.
final class Line {
  private var link: DeviceLink
  /// M1 that the next M2 answers.
  private(set) var challenge: [UInt8] = []
  /// The challenge in it.
  private(set) var nonce = Nonce()
  /// The device's time in it.
  private(set) var clock: UInt64?

  /// Connects, and waits for the device's challenge. A device without room is asked again until the time is over.
  ///
  /// - Throws: ``AttackFault/unreachable(_:)``, ``AttackFault/noChallenge(_:)``.
  init(to endpoint: Endpoint, of device: Target, timeoutMilliseconds: Int) throws(AttackFault) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    while true {
      do throws(TransportError) {
        link = try DeviceLink(to: endpoint, timeoutMilliseconds: deadline.remainingMilliseconds)
      } catch { throw .unreachable(error) }
      do throws(AttackFault) { 
        try awaitChallenge(of: device, by: deadline)
        return
      } catch {
        guard case .noChallenge(.verdict(let status, .absent, _)) = error, status == .busy || status == .internal,
          !deadline.hasPassed
        else { throw error }
        _ = poll(nil, 0, 50)
      }
    }
  }

  /// Waits for the next challenge on this connection.
  func awaitChallenge(of device: Target, by deadline: Deadline) throws(AttackFault) {
    let heard = receive(by: deadline)
    guard case .message(let bytes) = heard, let first = try? Challenge(bytes.span) else {
      throw .noChallenge(Reply(heard))
    }
    guard first.deviceID == device.id, first.keyID == device.keyID else { throw .anotherDevice }
    (challenge, nonce, clock) = (bytes, first.nonce, first.clock)
  }

  /// Receives the next message.
  func receive(by deadline: Deadline) -> Heard {
    do throws(TransportError) {
      return .message(try link.receive(by: deadline, wholeWithin: deadline.remainingMilliseconds))
    } catch { return Heard(error) }
  }

  /// Sends a message of 1 to 4096 bytes, and receives what follows. A peer that has gone is heard as the end.
  func exchange(_ message: [UInt8], by deadline: Deadline) -> Heard {
    send(message, by: deadline) ?? receive(by: deadline)
  }

  /// Sends a message; returns what was heard instead if that is impossible.
  func send(_ message: [UInt8], by deadline: Deadline) -> Heard? {
    do throws(TransportError) {
      try link.connection.send(message.span, by: deadline)
      return nil
    } catch { return error == .timedOutSending ? .silence : .closed }
  }

  /// Writes bytes as they are, without the limits and the framing of a message.
  func write(raw bytes: [UInt8]) {
    let file = link.connection.file.descriptor
    if link.connection.terminal == nil {
      _ = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(file, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
      }
    } else {
      _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
    }
  }
}

/// The identity of the attacked device, which every challenge must name.
struct Target: Sendable {
  let id: DeviceID
  let keyID: KeyID
}

/// The reasons why an attack came to no answer.
enum AttackFault: Error {
  /// The device could not be reached.
  case unreachable(TransportError)
  /// The device sent something else than a challenge.
  case noChallenge(Reply)
  /// The challenge is that of another device or key.
  case anotherDevice
  /// The attack needs something that is not there; a text for people.
  case notTried(String)
  /// The cryptography or the random source of this host failed.
  case cryptography
}
