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
  /// - Parameter kept: the connection of a serial line, on which the device begins anew; nil to connect.
  /// - Throws: ``AttackFault/unreachable(_:)``, ``AttackFault/noChallenge(_:)``, ``AttackFault/anotherDevice``.
  init(
    to endpoint: Endpoint, over kept: Connection? = nil, of device: Target, timeoutMilliseconds: Int
  ) throws(AttackFault) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    var kept = kept
    while true {
      do throws(TransportError) {
        link =
          if let kept { try DeviceLink(meeting: kept, by: deadline) } else {
            try DeviceLink(to: endpoint, timeoutMilliseconds: deadline.remainingMilliseconds)
          }
      } catch {
        // An emulated line has room for the next peer once it has seen that the one before has left.
        guard endpoint.scheme.isSerial, error == .refused || error == .closed, !deadline.hasPassed else {
          throw .unreachable(error)
        }
        kept = nil
        _ = poll(nil, 0, 20)
        continue
      }
      do throws(AttackFault) {
        try awaitChallenge(of: device, by: deadline)
        return
      } catch {
        guard error.isTransient(on: endpoint), !deadline.hasPassed else { throw error }
        kept = nil
        _ = poll(nil, 0, 50)
      }
    }
  }

  /// The connection, which serves as a serial line after this value.
  var connection: Connection { link.connection }

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
  func write(raw bytes: [UInt8]) { link.connection.write(raw: bytes) }
}

extension Connection {
  /// Writes bytes as they are, as many as the system takes at once, without the limits and the framing of a message.
  func write(raw bytes: [UInt8]) {
    let descriptor = file.descriptor
    _ = unsafe bytes.withUnsafeBytes {
      unsafe terminal == nil
        ? Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
        : Glibc.write(descriptor, $0.baseAddress, $0.count)
    }
  }
}

/// The identity of the attacked device, which every challenge must name.
struct Target: Sendable {
  let id: DeviceID
  let keyID: KeyID
}

extension AttackFault {
  /// Whether the device may send a challenge soon: it, or a bridge, has no room yet, or a line had another peer.
  fileprivate func isTransient(on endpoint: Endpoint) -> Bool {
    switch self {
    case .noChallenge(.verdict(.busy, .absent, _)), .noChallenge(.verdict(.internal, .absent, _)): true
    case .noChallenge(.closed): endpoint.scheme.isSerial
    default: false
    }
  }
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
