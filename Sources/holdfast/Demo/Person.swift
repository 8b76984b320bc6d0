/// A user of the demonstration's device, with an authenticator in the playground.
///
/// One-time passwords and seals come from counters, so that no line waits for a step of time or hangs on one. They have eight
/// digits: one run in a million has a wrong one that is right by chance.
struct Person {
  let name: String
  let playground: Playground
  /// Where the device is.
  let address: String

  static let pin = "3917"

  private var authenticator: String { playground.path("authenticator-\(name)") }

  /// The device's owner adds the user; the activation code.
  func add() throws(Failure) -> String {
    try printed(
      "code",
      by: [
        "device", "user", "add", "--otp", "hotp", "--digits", "8", "--seal", "OCRA-1:HOTP-SHA256-8:C-QH64", "--dir",
        playground.path("device"), name,
      ])
  }

  /// The device's owner lets the user try again; the unlock code.
  func issueUnlock() throws(Failure) -> String {
    try printed("code", by: ["device", "user", "unlock", "--dir", playground.path("device"), name])
  }

  /// Becomes a user of the device by its owner's code. `authenticator` is another one in the playground.
  func activate(by code: String, in authenticator: String? = nil) throws(Failure) -> ChildProcess.Ending {
    try run([
      "otp", "activate", "--connect", address, "--code", try playground.file(code, named: "code"), "--new-pin-file",
      try playground.file(Self.pin),
      "--authenticator", authenticator.map { playground.path($0) } ?? self.authenticator,
    ])
  }

  /// Takes an unlock code to the device.
  func unlock(by code: String) throws(Failure) -> ChildProcess.Ending {
    try run(["otp", "unlock", "--connect", address, "--code", try playground.file(code, named: "code")])
  }

  /// Lets the device prove itself, where a prover's state is.
  func checkHost(state: String) throws(Failure) -> ChildProcess.Ending {
    try run([
      "otp", "check-host", "--connect", address, "--state", playground.path(state), "--authenticator", authenticator,
    ])
  }

  /// The next one-time password.
  func password(pin: String = Person.pin) throws(Failure) -> String {
    try printed("code", by: passwordVerb(pin: pin, of: authenticator))
  }

  /// A seal over a command and its parameters.
  func seal(_ command: String, _ parameters: [String]) throws(Failure) -> String {
    try printed(
      "seal",
      by: [
        "seal", "--command", command, "--authenticator", authenticator, "--pin-file", try playground.file(Self.pin),
      ] + parameters.flatMap { ["--parameter", $0] })
  }

  /// What a thief sees of the authenticator's file with a PIN: the code, and all else that is said or written down.
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

  /// Text of the object that a verb prints; the verb must succeed.
  private func printed(_ member: String, by arguments: [String]) throws(Failure) -> String {
    let ending = try run(arguments + ["--json"])
    guard ending.status == 0, let text = ending.text(of: member) else {
      throw Failure(.fault, "holdfast \(arguments[0]) \(arguments[1]) ended with \(ending.statusName)")
    }
    return text
  }
}
