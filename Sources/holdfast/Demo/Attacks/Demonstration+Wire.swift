import HoldfastCore
import HoldfastOpenSSL

extension Demonstration {
  /// Messages caught, moved and changed on their way.
  mutating func attackTheWire(_ attacker: Attacker) throws(Failure) {
    let line = try Attacker.Line(attacker.endpoint)
    let genuine = try attacker.answer(to: try line.receive())
    _ = try line.exchange(genuine)
    _ = try line.receive()
    expect("an answer is replayed", .deviceMismatch, try line.exchange(genuine))

    let (here, there) = (try Attacker.Line(attacker.endpoint), try Attacker.Line(attacker.endpoint))
    _ = try there.receive()
    expect(
      "an answer is moved to another session", .deviceMismatch,
      try there.exchange(try attacker.answer(to: try here.receive())))

    let changed = try Attacker.Line(attacker.endpoint)
    var answer = try attacker.answer(to: try changed.receive())
    answer[answer.count - 17] ^= 1
    expect("the command is changed on its way", .malformed, try changed.exchange(answer))

    let moved = try Attacker.Line(attacker.endpoint)
    let challenge = try moved.receive()
    let compatible = try attacker.compatibilityAnswer(from: try attacker.answer(to: challenge), to: challenge)
    expect("a session's proof moved into a compatibility round", .malformed, try moved.exchange(compatible))

    expect("forged proofs under a sniffed reference to the token", .deviceMismatch, try forgeProofs(attacker))
    story.expect("… and its owner comes after that", Status.accepted.name, try runProver().statusName)
  }

  /// Nine answers with a genuine reference and proofs out of the air; the last one's status.
  private func forgeProofs(_ attacker: Attacker) throws(Failure) -> Status {
    let line = try Attacker.Line(attacker.endpoint)
    var status = Status.internal
    for _ in 0..<9 {
      _ = try line.receive()
      status = try line.exchange(try attacker.forgedAnswer())
    }
    return status
  }
}
