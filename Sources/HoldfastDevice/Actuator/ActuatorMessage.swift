import HoldfastCore
import HoldfastFormats

/// A command of an accepted round, on its way to an external actuator.
package struct ActuatorCommand: Sendable, Equatable {
  /// The number of the round's entry in the audit log.
  package let sequence: UInt64
  /// The command, 1 to 32 bytes.
  package let name: BoundedText<32>
  /// The parameters: at most 8, of at most 64 bytes each.
  package let parameters: [BoundedText<64>]
  /// The user whose codes the command needed; nil if it needed none.
  package let user: BoundedText<32>?
  /// The app that the token names.
  package let subject: BoundedText<64>

  /// Copies the command of a round.
  package init(_ request: borrowing Request, of round: borrowing AcceptedRound) {
    (sequence, name) = (round.sequence, request.command)
    var parameters: [BoundedText<64>] = []
    for index in 0..<(request.parameterCount ?? 0) { parameters.append(request.parameter(index)) }
    self.parameters = parameters
    (user, subject) = (round.user, round.subject)
  }
}

/// An answer of an external actuator.
package struct ActuatorAnswer: Sendable, Equatable {
  /// The outcome of a command.
  package enum Outcome: Sendable, Equatable {
    /// It was carried out, with this result of at most 1024 bytes.
    case done([UInt8])
    /// It failed, for this reason in the actuator's words.
    case failed(BoundedText<64>)
  }

  /// The outcome.
  package let outcome: Outcome
  /// The sequence number of the command that it answers; nil if the actuator does not say.
  package let sequence: UInt64?
  /// A text of 1 to 64 bytes that the audit log keeps in an entry of its own; nil for none.
  package var event: BoundedText<64>?

  /// Returns a text as an event of the audit log.
  ///
  /// - Throws: `unexpected` for a text that is empty, too long, or has characters that nobody sees.
  fileprivate static func event(_ text: BoundedText<64>?) throws(ActuatorMessageFault) -> BoundedText<64> {
    guard let text, !text.isEmpty, haveSameBytes(text.description, text.description.printable)
    else { throw .unexpected }
    return text
  }
}

/// An encoding of the messages between the device and an external actuator.
package protocol ActuatorCoding {
  /// The length of the longest message from an actuator, in bytes.
  static var maximumByteCount: Int { get }
  /// The device's first message: it asks for the commands.
  static var start: [UInt8] { get }
  /// Encodes a command.
  static func encode(_ command: ActuatorCommand) -> [UInt8]
  /// Decodes the actuator's first message: 1 to 32 different commands.
  static func commands(_ message: [UInt8]) throws(ActuatorMessageFault) -> Set<BoundedText<32>>
  /// Decodes an answer.
  static func answer(_ message: [UInt8]) throws(ActuatorMessageFault) -> ActuatorAnswer
}

extension ActuatorCoding {
  /// Checks the names of commands.
  fileprivate static func commandSet(_ names: [BoundedText<32>?]) throws(ActuatorMessageFault) -> Set<BoundedText<32>> {
    let commands = Set(names.compactMap { name in name.flatMap { $0.isEmpty ? nil : $0 } })
    guard 1...32 ~= names.count, commands.count == names.count else { throw .commands }
    return commands
  }
}

/// The messages as deterministic CBOR:
/// `[2]` answered by `[2, [command …]]`, and `[1, sequence, command, [parameter …], user / null, subject]` answered by
/// `[0, result]` or `[1, text]`, each with or without the sequence as a third element, and then with or without an event for the
/// audit log as a fourth.
///
/// Source: docs/operating.md, Actuators.
package enum ActuatorCBOR: ActuatorCoding {
  package static let maximumByteCount = 2048

  package static var start: [UInt8] { [0x81, 0x02] }

  package static func encode(_ command: ActuatorCommand) -> [UInt8] {
    var message: [UInt8] = []
    message.appendCBOR(array: 6)
    message.appendCBOR(unsigned: 1)
    message.appendCBOR(unsigned: command.sequence)
    message.appendCBOR(text: command.name.bytes)
    message.appendCBOR(array: command.parameters.count)
    for parameter in command.parameters { message.appendCBOR(text: parameter.bytes) }
    if let user = command.user { message.appendCBOR(text: user.bytes) } else { message.appendCBORNull() }
    message.appendCBOR(text: command.subject.bytes)
    return message
  }

  package static func commands(_ message: [UInt8]) throws(ActuatorMessageFault) -> Set<BoundedText<32>> {
    var names: [BoundedText<32>?] = []
    do throws(EncodingFault) {
      var reader = CBORReader(message.span)
      try reader.array(of: 2)
      guard try reader.unsigned() == 2 else { throw .unexpected }
      for _ in 0..<(try reader.arrayHead()) { names.append(BoundedText(try reader.textString())) }
      try reader.finish()
    } catch { throw ActuatorMessageFault(error) }
    return try commandSet(names)
  }

  package static func answer(_ message: [UInt8]) throws(ActuatorMessageFault) -> ActuatorAnswer {
    var answer: ActuatorAnswer
    let event: BoundedText<64>??
    do throws(EncodingFault) {
      var reader = CBORReader(message.span)
      let count = try reader.arrayHead()
      guard 2...4 ~= count else { throw .unexpected }
      let outcome: ActuatorAnswer.Outcome
      switch try reader.unsigned() {
      case 0:
        let result = try reader.byteString()
        guard result.count <= ResultBuffer.capacity else { throw .tooLong }
        outcome = .done(result.indices.map { result[$0] })
      case 1:
        guard let text = BoundedText<64>(try reader.textString()) else { throw .unexpected }
        outcome = .failed(text)
      default: throw .unexpected
      }
      let sequence = count >= 3 ? try reader.unsigned() : nil
      answer = ActuatorAnswer(outcome: outcome, sequence: sequence)
      event = count == 4 ? .some(BoundedText<64>(try reader.textString())) : .none
      try reader.finish()
    } catch { throw ActuatorMessageFault(error) }
    if let event { answer.event = try ActuatorAnswer.event(event) }
    return answer
  }
}

extension ActuatorMessageFault {
  fileprivate init(_ fault: EncodingFault) {
    self = fault == .malformed ? .malformed : fault == .tooLong ? .tooLong : .unexpected
  }
}

/// The messages as JSON objects, one on each line: `{"start":1}` answered by `{"commands":[…]}`, and
/// `{"sequence":7,"command":"unlock","parameters":[],"user":null,"subject":"app"}` answered by
/// `{"sequence":7,"result":"…"}`, `{"sequence":7,"result_base64url":"…"}` for bytes that are not UTF-8, or
/// `{"sequence":7,"error":"…"}`, each with or without `"event":"…"` for the audit log.
///
/// Source: docs/operating.md, Actuators.
package enum ActuatorJSON: ActuatorCoding {
  package static let maximumByteCount = 16 * 1024

  package static var start: [UInt8] { JSONValue.object([("start", .integer(1))]).compact() }

  package static func encode(_ command: ActuatorCommand) -> [UInt8] {
    JSONValue.object([
      ("sequence", .integer(command.sequence)), ("command", .string(command.name.description)),
      ("parameters", .array(command.parameters.map { .string($0.description) })),
      ("user", command.user.map { .string($0.description) } ?? .null),
      ("subject", .string(command.subject.description)),
    ]).compact()
  }

  package static func commands(_ message: [UInt8]) throws(ActuatorMessageFault) -> Set<BoundedText<32>> {
    let value = try parse(message)
    guard value.hasOnly(["commands"]), let names = value["commands"]?.elements else { throw .unexpected }
    return try commandSet(names.map { $0.text.flatMap { BoundedText($0) } })
  }

  package static func answer(_ message: [UInt8]) throws(ActuatorMessageFault) -> ActuatorAnswer {
    let value = try parse(message)
    let event = value["event"]
    guard let members = value.members, members.count == (event == nil ? 2 : 3),
      let sequence = value["sequence"]?.number
    else { throw .unexpected }
    var answer = ActuatorAnswer(outcome: try outcome(value), sequence: sequence)
    if let event { answer.event = try ActuatorAnswer.event(event.text.flatMap { BoundedText($0) }) }
    return answer
  }

  private static func outcome(_ value: JSONValue) throws(ActuatorMessageFault) -> ActuatorAnswer.Outcome {
    if let result = value["result"]?.text {
      guard result.utf8.count <= ResultBuffer.capacity else { throw .tooLong }
      return .done(Array(result.utf8))
    }
    if let text = value["result_base64url"]?.text {
      guard let result = try? decodePublicBase64URL(text) else { throw .unexpected }
      guard result.count <= ResultBuffer.capacity else { throw .tooLong }
      return .done(result)
    }
    guard let error = value["error"]?.text, let text = BoundedText<64>(error) else { throw .unexpected }
    return .failed(text)
  }

  private static func parse(_ message: [UInt8]) throws(ActuatorMessageFault) -> JSONValue {
    do throws(JSONFault) { return try JSONValue(parsing: message, byteLimit: maximumByteCount) } catch {
      throw error == .tooLong ? .tooLong : .malformed
    }
  }
}
