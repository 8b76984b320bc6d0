import HoldfastCore
import HoldfastTransport

extension Demonstration {
  /// The right person: a user whom the owner has let in, and one-time passwords beside the proof.
  mutating func proveThePerson(_ alice: Person) throws(Failure) {
    story.heading("The right person: alice, and one-time passwords")
    let code = try alice.add()
    story.step("the owner lets alice in", "an activation code, good for ten minutes and one use")
    story.expect("alice activates her authenticator by it", "exit 0", try alice.activate(by: code).exit)
    story.expect("… and somebody else by the same", "exit 1", try alice.activate(by: code, in: "late").exit)
    story.expect("the device proves itself to alice", "exit 0", try alice.checkHost(state: "prover").exit)
    story.expect(
      "configure, by the proof alone", Status.factorMissing.name, try runProver(command: "configure").statusName)
    let password = try alice.password()
    try configure("configure, by proof and one-time password", .accepted, alice, password)
    try configure("… by the same one again", .otpRejected, alice, password)
    try configure("… by one that was made under another PIN", .otpRejected, alice, try alice.password(pin: "2840"))
  }

  /// A proof with a one-time password.
  mutating func configure(
    _ text: String, _ expected: Status, _ person: Person, _ password: String
  ) throws(Failure) {
    expect(text, expected, try attempt(person, password: password))
  }

  func attempt(_ person: Person, password: String) throws(Failure) -> ChildProcess.Ending {
    try runProver(as: person, command: "configure", code: ("--otp", password))
  }

  /// Exactly this command: a seal over it and its parameters.
  mutating func proveTheCommand(_ alice: Person) throws(Failure) {
    story.heading("Exactly this command: a seal over open-safe 7")
    let seal = try alice.seal("open-safe", ["7"])
    for (text, parameter, expected) in [
      ("open-safe 8, by that seal", "8", Status.sealRejected), ("open-safe 7, by that seal", "7", .accepted),
      ("… by the same one again", "7", .sealRejected),
    ] {
      let ending = try runProver(
        as: alice, command: "open-safe", parameters: [parameter], code: ("--seal", seal))
      expect(text, expected, ending)
    }
  }

  /// Runs `holdfast prove` with a user's code.
  private func runProver(
    as person: Person, command: String, parameters: [String] = [], code: (option: String, digits: String)
  ) throws(Failure) -> ChildProcess.Ending {
    try runProver(
      command: command,
      options: parameters.flatMap { ["--parameter", $0] } + [
        "--user", person.name, code.option, try playground.file(code.digits),
      ])
  }

  /// A line that ends in a verdict, and in what the lock says of it.
  private mutating func expect(_ text: String, _ expected: Status, _ ending: ChildProcess.Ending) {
    story.expect(
      text, expected.name, ending.statusName, detail: expected == .accepted ? ending.text(of: "result") ?? "?" : "")
  }
}
