import HoldfastCore
import HoldfastStorage
import HoldfastTransport

extension Demonstration {
  /// The other way round: a device that is not the one.
  mutating func attackWithAnImpostor(_ attacker: Attacker) throws(Failure) {
    try meet("an impostor device that says accepted", ImpostorDevice.verdict(.accepted), of: attacker.enrolment)
    let line = try Attacker.Line(attacker.endpoint)
    try line.send(try attacker.answer(to: try line.receive()))
    try meet("… and one that replays a genuine acceptance", try line.receive(), of: attacker.enrolment)
    let before = try stateOfProver()
    try meet("… and one that says the token has expired", ImpostorDevice.verdict(.tokenExpired), of: attacker.enrolment)
    story.expect(
      "what none of them changed is the prover's state", "the same",
      try stateOfProver() == before ? "the same" : "changed")
  }

  /// Lets the prover meet an impostor that answers with `verdict`.
  private mutating func meet(_ text: String, _ verdict: [UInt8], of enrolment: Enrolment) throws(Failure) {
    let endpoint = try Endpoint(argument: "unix:\(playground.path("impostor.sock"))")
    try ImpostorDevice(descriptor: enrolment.descriptor, verdict: verdict).answerOnce(at: endpoint)
    let ending = try runProver(at: endpoint)
    story.expect(text, "exit 3", ending.status.map { "exit \($0)" } ?? "killed")
  }

  /// The files of the prover's state folder, one after the other, but for the number of the last request, which was its own.
  private func stateOfProver() throws(Failure) -> String {
    try ChildProcess.run([
      "/bin/sh", "-c",
      "cd \"$0\" && find . -type f ! -name \(RequestNumbers.fileName) -printf '%p %m\\n' -exec cksum {} + | sort",
      playground.path("prover"),
    ])
    .output
  }
}
