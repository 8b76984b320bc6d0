import CHoldfast
import HoldfastCore
import Synchronization

/// A machine of the caller's. Connections share it, and one command at a time is passed to it.
struct CallerMachine: Actuator, Sendable {
  private let shared: Shared

  @safe private final class Shared: @unchecked Sendable {
    let actuator: hf_actuator_t
    /// The names of the commands; nil if the machine is asked for each.
    let commands: Set<BoundedText<32>>?
    let turn = Mutex(())

    init(_ actuator: hf_actuator_t, _ commands: Set<BoundedText<32>>?) {
      unsafe self.actuator = actuator
      self.commands = commands
    }
  }

  /// The largest number of names: that of the commands in a policy.
  private static let maximumCommandCount = 256

  /// Reads the caller's functions and names.
  init(_ pointer: UnsafePointer<hf_actuator_t>?) throws(CallFailure) {
    guard let actuator = unsafe pointer?.pointee, unsafe actuator.perform != nil else { throw .argument }
    let count = unsafe actuator.command_count
    guard let names = unsafe actuator.commands else {
      guard count == 0 else { throw .argument }
      shared = unsafe Shared(actuator, nil)
      return
    }
    guard (1...Self.maximumCommandCount).contains(count) else { throw .argument }
    var commands: Set<BoundedText<32>> = []
    for index in 0..<count { commands.insert(try unsafe Input.boundedText(names[index])) }
    shared = unsafe Shared(actuator, commands)
  }

  func carriesOut(_ command: BoundedText<32>) -> Bool { shared.commands?.contains(command) ?? true }

  /// Carries out a command of which nobody says whose it is; a device calls the other function.
  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    try perform(request, of: AcceptedRound(), result: &result)
  }

  func perform(
    _ request: borrowing Request, of round: borrowing AcceptedRound, result: inout ResultBuffer
  ) throws(ActuatorFailure) {
    // C's texts end at a NUL: it would carry out another command than the one that was proved.
    var texts = [
      try Self.text(request.command.bytes), try Self.text(round.subject.bytes),
      try round.user.map { user throws(ActuatorFailure) in try Self.text(user.bytes) } ?? [0],
    ]
    for index in 0..<(request.parameterCount ?? 0) { texts.append(try Self.text(request.parameter(index).bytes)) }
    var answer = [UInt8](repeating: 0, count: Int(HF_RESULT_BYTES))
    var byteCount = answer.count
    let (sequence, hasUser) = (round.sequence, round.user != nil)
    let outcome = shared.turn.withLock { _ in call(texts, sequence, hasUser, &answer, &byteCount) }
    guard outcome == 0 else { throw ActuatorFailure(isUnknownCommand: outcome == CInt(HF_COMMAND_REFUSED.rawValue)) }
    guard (0...answer.count).contains(byteCount) else { throw ActuatorFailure() }
    do throws(EncodingFault) { try result.append(answer.span.extracting(0..<byteCount)) } catch {
      throw ActuatorFailure()
    }
  }

  /// Calls the function with texts that live until it returns: the command, the subject, the user, and the parameters.
  private func call(
    _ texts: [[UInt8]], _ sequence: UInt64, _ hasUser: Bool, _ answer: inout [UInt8], _ byteCount: inout Int
  ) -> CInt {
    let starts = texts.indices.map { index in texts[..<index].reduce(0) { $0 + $1.count } }
    return unsafe texts.flatMap(\.self).withUnsafeBufferPointer { memory in
      unsafe memory.withMemoryRebound(to: CChar.self) { text in
        var command = unsafe hf_command_t()
        let base = text.baseAddress!
        unsafe command.name = base
        unsafe command.subject = base + starts[1]
        unsafe command.user = hasUser ? base + starts[2] : nil
        unsafe command.sequence = sequence
        unsafe command.parameter_count = texts.count - 3
        unsafe withUnsafeMutableBytes(of: &command.parameters) { list in
          unsafe list.withMemoryRebound(to: UnsafePointer<CChar>?.self) { list in
            for index in 3..<texts.count { unsafe list[index - 3] = base + starts[index] }
          }
        }
        return unsafe answer.withUnsafeMutableBufferPointer { answer in
          unsafe shared.actuator.perform(shared.actuator.context, &command, answer.baseAddress, &byteCount)
        }
      }
    }
  }

  /// Returns the bytes of a text and a NUL.
  private static func text(_ bytes: Span<UInt8>) throws(ActuatorFailure) -> [UInt8] {
    var text: [UInt8] = []
    for index in bytes.indices {
      guard bytes[index] != 0 else { throw ActuatorFailure() }
      text.append(bytes[index])
    }
    return text + [0]
  }
}
