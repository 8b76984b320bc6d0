import Testing

import holdfast

@Suite("Typing errors")
struct TypingErrorTests {
  @Test(
    "a verb that is nearly right is suggested",
    arguments: [
      ("prov", "prove"), ("porve", "prove"), ("enrol", "enroll"), ("device serv", "device serve"),
      ("device usr add", "device user"), ("otp cod", "otp code"), ("dveice", "device"), ("help prov", "prove"),
      // Elsewhere.
      ("serve", "device serve"), ("activate", "otp activate"), ("version", "--version"),
    ])
  func verbs(line: String, suggestion: String) throws {
    let failure = try #require(TypingError(in: line.split(separator: " ").map(String.init))).failure
    #expect(failure.status == .usage)
    #expect(
      failure.hint?.hasPrefix("did you mean holdfast \(suggestion)? see holdfast") == true, "\(failure.hint ?? "")")
  }

  @Test(
    "a verb that is like no other has no suggestion", arguments: ["frobnicate", "x", "prooooove", "device frobnicate"])
  func strangeVerbs(line: String) throws {
    let failure = try #require(TypingError(in: line.split(separator: " ").map(String.init))).failure
    #expect(failure.hint?.hasPrefix("see holdfast") == true)
  }

  @Test(
    "an option that is nearly right is suggested, and the value is not repeated",
    arguments: [
      ("prove --conect 1234567", "--connect"), ("prove --connect=x --comand=1234567", "--command"),
      ("device audit --dri 1234567", "--dir"), ("otp --authentcator 1234567", "--authenticator"),
      ("service init -dir 1234567", "--dir"), ("device show --jsno", "--json"),
    ])
  func options(line: String, suggestion: String) throws {
    let failure = try #require(TypingError(in: line.split(separator: " ").map(String.init))).failure
    #expect(failure.hint?.hasPrefix("did you mean \(suggestion)? see holdfast ") == true)
    #expect(!failure.message.contains("1234567"))
  }

  @Test("a negative number is not taken for an option")
  func negativeNumbers() throws {
    let failure = try #require(TypingError(in: ["device", "audit", "--dir", "lock", "--last", "-1"])).failure
    #expect(failure.hint?.contains("write --last=-1;") == true)
  }

  @Test(
    "what is right is no typing error",
    arguments: [
      "prove --connect unix:/x --state p --command c", "otp --authenticator keys", "device", "help device serve",
      "otp compute ocra --question --conect --suite x", "prove --parameter x -- --conect",
    ])
  func right(line: String) {
    #expect(TypingError(in: line.split(separator: " ").map(String.init)) == nil)
  }

  @Test("--json before the verb goes behind it")
  func json() {
    #expect(Arguments(["--json", "device", "show", "--dir", "x"]).words == ["device", "show", "--json", "--dir", "x"])
    #expect(Arguments(["device", "--json", "show"]).words == ["device", "show", "--json"])
    #expect(Arguments(["device", "show", "--", "--json"]).words == ["device", "show", "--", "--json"])
    #expect(!Arguments(["device", "show", "--", "--json"]).isMarkedJSON)
    #expect(Arguments(["prove", "--conect", "x", "--json"]).isMarkedJSON)
  }
}
