import HoldfastCore
import HoldfastReplay

/// `SessionM1`: challenges that a strict reader takes or refuses. Source: docs/protocol.md, Session.
struct ChallengeVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    readAndWriteAgain(try test.bytes("message")) { (message, buffer) throws(EncodingFault) in
      try WrittenAgain.challenge(message, into: &buffer)
    }
  }
}

/// `SessionM2`: answers, with the head in them and without the sealed part. Source: docs/protocol.md, Session.
struct AnswerVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    readAndWriteAgain(try test.bytes("message")) { (message, buffer) throws(EncodingFault) in
      try WrittenAgain.answer(message, into: &buffer)
    }
  }
}

/// `SessionM3`: verdicts that a strict reader takes or refuses. Source: docs/protocol.md, Session.
struct VerdictVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    readAndWriteAgain(try test.bytes("message")) { (message, buffer) throws(EncodingFault) in
      try WrittenAgain.verdict(message, into: &buffer)
    }
  }
}

/// `SessionRequest`: the plaintext of M2's sealed part. Source: docs/protocol.md, Session.
struct RequestVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    readAndWriteAgain(try test.bytes("message")) { (message, buffer) throws(EncodingFault) in
      try WrittenAgain.request(message, into: &buffer)
    }
  }
}

/// `SessionReply`: the plaintext of M3's sealed part. Source: docs/protocol.md.
struct ReplyVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    var written: [UInt8] = []
    do throws(EncodingFault) {
      let reply = try Reply(message.span)
      reply.encode(into: &written)
    } catch { return .refused("\(error)") }
    // Labels that are not known are not written again: they come behind all others. The head of the map has one byte.
    return message.dropFirst().starts(with: written.dropFirst()) ? .accepted : .differs("message, written again,")
  }
}

/// Deterministic encoding leaves one way to write what was read: the same bytes.
private func readAndWriteAgain(
  _ message: [UInt8], _ body: (Span<UInt8>, inout MessageBuffer) throws(EncodingFault) -> Void
) -> Outcome {
  var buffer = MessageBuffer()
  do throws(EncodingFault) {
    try body(message.span, &buffer)
  } catch { return .refused("\(error)") }
  return buffer.bytes.elementsEqual(message.span) ? .accepted : .differs("message, written again,")
}
