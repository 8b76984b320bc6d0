import HoldfastCore
import HoldfastTransport

/// A user of the demonstration's device, with an authenticator in the playground.
///
/// One-time passwords and seals use counters, so that no step depends on or waits for the time. They have eight digits:
/// in one run of a million, a wrong one happens to be right.
struct Person {
  let name: String
  let playground: Playground
  /// The address of the device.
  let address: String

  static let pin = "3917"

  private var authenticator: String { playground.path("authenticator-\(name)") }

  /// Adds the user as the device's owner and returns the activation code.
  func add() throws(Failure) -> String {
    try printed(
      "code",
      by: [
        "device", "user", "add", "--otp", "hotp", "--digits", "8", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64", "--dir",
        playground.path("device"), name,
      ])
  }

  /// Allows the user to try again, as the device's owner, and returns the unlock code.
  func issueUnlock() throws(Failure) -> String {
    try printed("code", by: ["device", "user", "unlock", "--dir", playground.path("device"), name])
  }

  /// Activates the user with the owner's code. `authenticator` replaces the user's own in the playground.
  func activate(by code: String, in authenticator: String? = nil) throws(Failure) -> ChildProcess.Ending {
    try run([
      "otp", "activate", "--connect", address, "--code", try playground.file(code, named: "code"), "--new-pin-file",
      try playground.file(Self.pin),
      "--authenticator", authenticator.map { playground.path($0) } ?? self.authenticator,
    ])
  }

  /// Presents an unlock code to the device.
  func unlock(by code: String) throws(Failure) -> ChildProcess.Ending {
    try run(["otp", "unlock", "--connect", address, "--code", try playground.file(code, named: "code")])
  }

  /// Asks the device to prove itself through a prover's enrolment.
  func checkHost(state: String) throws(Failure) -> ChildProcess.Ending {
    try run([
      "otp", "check-host", "--connect", address, "--state", playground.path(state), "--authenticator", authenticator,
    ])
  }

  /// Returns the next one-time password.
  func password(pin: String = Person.pin) throws(Failure) -> String {
    try printed("code", by: passwordVerb(pin: pin, of: authenticator))
  }

  /// Makes a seal over a command and its parameters.
  func seal(_ command: String, _ parameters: [String]) throws(Failure) -> String {
    try printed(
      "seal",
      by: [
        "seal", "--command", command, "--authenticator", authenticator, "--pin-file", try playground.file(Self.pin),
      ] + parameters.flatMap { ["--parameter", $0] })
  }

  /// Returns what a thief learns from the authenticator's file with a PIN: the code, and all other output and stored
  /// values.
  func steal(pin: String) throws(Failure) -> (code: String, rest: String) {
    let copy = playground.path("stolen")
    _ = try ChildProcess.run(["/bin/rm", "-rf", copy])
    _ = try ChildProcess.run(["/bin/cp", "-r", authenticator, copy])
    let ending = try run(passwordVerb(pin: pin, of: copy) + ["--json"])
    let records = try run(["otp", "list", "--authenticator", copy, "--json"])
    let code = ending.text(of: "code") ?? ""
    return (
      code, "\(ending.output.replacing(code, with: "")), exit \(ending.status ?? -1)\n\(records.output)"
    )
  }

  private func passwordVerb(pin: String, of authenticator: String) throws(Failure) -> [String] {
    ["otp", "code", "--authenticator", authenticator, "--pin-file", try playground.file(pin)]
  }

  private func run(_ arguments: [String]) throws(Failure) -> ChildProcess.Ending {
    try ChildProcess.run([try Playground.program] + arguments)
  }

  /// Runs a verb, which must succeed, and returns a text in the object that it prints.
  private func printed(_ member: String, by arguments: [String]) throws(Failure) -> String {
    let ending = try run(arguments + ["--json"])
    guard ending.status == 0, let text = ending.text(of: member) else {
      throw Failure(.fault, "holdfast \(arguments[0]) \(arguments[1]) ended with \(ending.statusName)")
    }
    return text
  }
}

extension Demonstration {
  /// Proves the right person: a user that the owner added, with one-time passwords in addition to the proof.
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

  /// Makes a proof with a one-time password.
  mutating func configure(
    _ text: String, _ expected: Status, _ person: Person, _ password: String
  ) throws(Failure) {
    expect(text, expected, try attempt(person, password: password))
  }

  func attempt(_ person: Person, password: String) throws(Failure) -> ChildProcess.Ending {
    try runProver(as: person, command: "configure", code: ("--otp", password))
  }

  /// Proves exactly one command: a seal over it and its parameters.
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

  /// Checks a step that ends in a verdict, with the lock's result.
  private mutating func expect(_ text: String, _ expected: Status, _ ending: ChildProcess.Ending) {
    story.expect(
      text, expected.name, ending.statusName, detail: expected == .accepted ? ending.text(of: "result") ?? "?" : "")
  }

  /// Guesses codes, and uses a stolen authenticator.
  mutating func attackTheCodes(_ alice: Person) throws(Failure) {
    let bob = Person(name: "bob", playground: playground, address: alice.address)
    story.expect("bob is let in too, and activates", "exit 0", try bob.activate(by: try bob.add()).exit)
    let right = try bob.password()
    var statuses: [String] = []
    for difference in 1...5 {
      statuses.append(try attempt(bob, password: wrong(right, by: difference)).statusName)
    }
    let rejected = Status.otpRejected.name
    story.expect("five guesses of bob's password", rejected, statuses.first { $0 != rejected } ?? rejected)
    try configure("… and then the right one", .lockedOut, bob, right)
    try configure("alice is not locked out for that", .accepted, alice, try alice.password())
    story.expect(
      "bob takes the owner's unlock code to the device", "exit 0", try bob.unlock(by: bob.issueUnlock()).exit)
    try configure("… and his password counts again", .accepted, bob, right)
    try stealTheAuthenticator(of: alice)
  }

  /// Returns a wrong code of the same length, at a distance from `right`.
  private func wrong(_ right: String, by difference: Int) -> String {
    let digits = String((Int(right) ?? 0) + difference)
    return String((String(repeating: "0", count: right.count) + digits).suffix(right.count))
  }

  /// Checks that every PIN yields a code and that no other output or stored value depends on the PIN.
  private mutating func stealTheAuthenticator(of person: Person) throws(Failure) {
    var seen: [(code: String, rest: String)] = []
    for pin in [Person.pin, "2840", "7053", "9164"] { seen.append(try person.steal(pin: pin)) }
    let areCodes = seen.allSatisfy { $0.code.utf8.count == 8 && $0.code.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    let isSilent = seen.allSatisfy { $0.rest == seen[0].rest }
    story.expect(
      "a stolen authenticator, tried with four PINs", "four codes",
      areCodes && Set(seen.map(\.code)).count == seen.count ? "four codes" : "other than codes")
    story.expect(
      "… and what tells which of them is right", "nothing", isSilent ? "nothing" : "what it says or writes down")
  }
}
