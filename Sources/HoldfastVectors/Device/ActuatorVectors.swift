import HoldfastCore
import HoldfastDevice

/// The vectors `ActuatorCommandsCBOR` and `ActuatorCommandsJSON`: an actuator's first message. Source: docs/operating.md,
/// Actuators.
struct ActuatorCommandsVectors<Coding: ActuatorCoding>: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    do throws(ActuatorMessageFault) { _ = try Coding.commands(message) } catch { return .refused("\(error)") }
    return .accepted
  }
}

/// The vectors `ActuatorAnswerCBOR` and `ActuatorAnswerJSON`: an actuator's answers. Source: docs/operating.md, Actuators.
struct ActuatorAnswerVectors<Coding: ActuatorCoding>: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    do throws(ActuatorMessageFault) { _ = try Coding.answer(message) } catch { return .refused("\(error)") }
    return .accepted
  }
}

/// The vectors `ActuatorCommand`: a command on its way to an actuator, written in both encodings. Source: docs/operating.md, Actuators.
struct ActuatorCommandVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let command = try ActuatorCommand(test)
    let (cbor, json) = (try test.bytes("cbor"), try test.bytes("json"))
    guard ActuatorCBOR.encode(command) == cbor else { return .refused("cbor differs") }
    return ActuatorJSON.encode(command) == json ? .accepted : .refused("json differs")
  }
}

extension ActuatorCommand {
  fileprivate init(_ test: VectorTest) throws(VectorFault) {
    let user = try test.node.member("user")
    let name: BoundedText<32>? = user.isNull ? nil : try user.bounded()
    var request = Request(command: try test.node.member("command").bounded())
    for node in try test.node.member("parameters").elements() {
      let parameter: BoundedText<64> = try node.bounded()
      do throws(EncodingFault) { try request.append(parameter: parameter) } catch { throw node.fault(.wrongValue) }
    }
    self.init(
      request,
      of: AcceptedRound(
        sequence: try test.node.member("sequence").number(), user: name,
        subject: try test.node.member("subject").bounded()))
  }
}

extension VectorNode {
  /// Returns a text of at most `capacity` bytes.
  fileprivate func bounded<let capacity: Int>() throws(VectorFault) -> BoundedText<capacity> {
    guard let text = BoundedText<capacity>(try text()) else { throw fault(.wrongValue) }
    return text
  }
}
