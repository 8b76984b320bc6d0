import HoldfastCore

extension Demonstration {
  /// Codes that somebody guesses, and an authenticator that somebody has stolen.
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

  /// A code of the same length that is none of those near `right`.
  private func wrong(_ right: String, by difference: Int) -> String {
    let digits = String((Int(right) ?? 0) + difference)
    return String((String(repeating: "0", count: right.count) + digits).suffix(right.count))
  }

  /// Whatever PIN is tried, there is a code, and nothing beside it that another PIN does not give.
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
