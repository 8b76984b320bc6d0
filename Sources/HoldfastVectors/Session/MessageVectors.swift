import HoldfastCore
import HoldfastReplay

/// The vectors `SessionM1`: challenges that a strict reader accepts or refuses. Source: docs/protocol.md, Session.
struct ChallengeVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    readAndWriteAgain(try test.bytes("message")) { (message, buffer) throws(EncodingFault) in
      try RoundTrip.challenge(message, into: &buffer)
    }
  }
}

/// The vectors `SessionM2`: proof messages, including the head but without the sealed part; and `SessionCompatibility`: those of
/// compatibility rounds. Source: docs/protocol.md, Session and Compatibility round.
struct AnswerVectors: ReplayableGroup {
  private let isCompatibility: Bool

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    isCompatibility = try group.member("type").text() == "SessionCompatibility"
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    // The number of elements tells them apart.
    guard (message.first == 0x87) == isCompatibility else { return .refused("another message") }
    return readAndWriteAgain(message) { (message, buffer) throws(EncodingFault) in
      try RoundTrip.answer(message, into: &buffer)
    }
  }
}

/// The vectors `SessionM3`: verdicts that a strict reader accepts or refuses. Source: docs/protocol.md, Session.
struct VerdictVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    readAndWriteAgain(try test.bytes("message")) { (message, buffer) throws(EncodingFault) in
      try RoundTrip.verdict(message, into: &buffer)
    }
  }
}

/// The vectors `SessionRequest`: the plaintext of M2's sealed part. Source: docs/protocol.md, Session.
struct RequestVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    readAndWriteAgain(try test.bytes("message")) { (message, buffer) throws(EncodingFault) in
      try RoundTrip.request(message, into: &buffer)
    }
  }
}

/// The vectors `SessionReply`: the plaintext of M3's sealed part. Source: docs/protocol.md, Session.
struct ReplyVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    var written: [UInt8] = []
    do throws(EncodingFault) {
      let reply = try VerdictBody(message.span)
      reply.encode(into: &written)
    } catch { return .refused("\(error)") }
    // Unknown labels are not written again; they come after all known ones. The map's head, whose count differs, is one
    // byte.
    return message.dropFirst().starts(with: written.dropFirst()) ? .accepted : .differs("message, written again,")
  }
}

/// Reads a message and writes it again. Deterministic encoding permits only one result: the same bytes.
private func readAndWriteAgain(
  _ message: [UInt8], _ body: (Span<UInt8>, inout MessageBuffer) throws(EncodingFault) -> Void
) -> Outcome {
  var buffer = MessageBuffer()
  do throws(EncodingFault) {
    try body(message.span, &buffer)
  } catch { return .refused("\(error)") }
  return buffer.bytes.elementsEqual(message.span) ? .accepted : .differs("message, written again,")
}
