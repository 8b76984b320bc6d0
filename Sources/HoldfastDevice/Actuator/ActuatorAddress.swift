import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// The place of an external actuator, and how messages to it are written: `exec:PATH`, `lines:PATH` or `unix:PATH`.
package enum ActuatorAddress: Sendable, Equatable, CustomStringConvertible {
  /// A program that is started, with CBOR messages, each after its length in two bytes.
  case program(path: String)
  /// A program that is started, with JSON messages, one on each line.
  case lines(path: String)
  /// A listening socket of the type `SOCK_SEQPACKET`, with one CBOR message in each packet.
  case socket(path: String)

  /// Parses an address; nil for another form or an empty path.
  package init?(_ text: String) {
    guard let colon = text.firstIndex(of: ":") else { return nil }
    let path = String(text[text.index(after: colon)...])
    guard !path.isEmpty, !path.utf8.contains(0) else { return nil }
    switch text[..<colon] {
    case "exec": self = .program(path: path)
    case "lines": self = .lines(path: path)
    case "unix": self = .socket(path: path)
    default: return nil
    }
  }

  /// The address as text. Parsing the text gives the same address.
  package var description: String {
    switch self {
    case .program(let path): "exec:\(path)"
    case .lines(let path): "lines:\(path)"
    case .socket(let path): "unix:\(path)"
    }
  }

  /// The path of the program or socket.
  package var path: String {
    switch self {
    case .program(let path), .lines(let path), .socket(let path): path
    }
  }

  /// The method that separates messages.
  var framing: ActuatorFraming {
    switch self {
    case .program: .lengths
    case .lines: .lines
    case .socket: .packets
    }
  }

  /// The encoding of messages.
  var coding: any ActuatorCoding.Type {
    if case .lines = self { ActuatorJSON.self } else { ActuatorCBOR.self }
  }
}

/// The reason that an external actuator could not be started.
package enum ActuatorStartFault: Error, Equatable {
  /// The program could not be executed, or nobody listens at the socket.
  case system(SystemError)
  /// It did not say within ``ExternalActuator/startMilliseconds`` which commands it carries out.
  case silent
  /// It ended first.
  case ended(ChildEnd?)
  /// Its first message is not the list of its commands.
  case badMessage(ActuatorMessageFault)
  /// The device was stopped meanwhile.
  case stopped
}

/// The fault of a message from an actuator.
package enum ActuatorMessageFault: Error, Equatable {
  /// The message is longer than any that an actuator may send.
  case tooLong
  /// The message is not deterministic CBOR, or not strict JSON.
  case malformed
  /// The message has another structure than documented.
  case unexpected
  /// The list of commands is empty, has more than 32, or has one twice or of a length other than 1 to 32 bytes.
  case commands
  /// The message came without a question.
  case outOfTurn
}
