import HoldfastCore
import HoldfastIssuer
import HoldfastService
import TestSupport
import Testing

@Suite struct AttestingTests {
  @Test(arguments: TestedDatabase.installed)
  func `the same evidence is attested again for the same device for a day, and then no more`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let app = TestApp(salt: 1)
    _ = try test.attest(app)
    _ = try test.attest(app)
    test.wait(seconds: 86_399)
    _ = try test.attest(app)
    test.wait(seconds: 1)
    #expect(try test.fleet.attest(app.evidence(), for: test.device).reasons == ["repeated"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a baseline is attested for one device only, and with the same evidence only`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let app = TestApp(salt: 1)
    _ = try test.attest(app)
    #expect(try test.fleet.attest(app.evidence(), for: TestFleet.device(2)).reasons == ["repeated"])
    var changed = app
    changed.properties = ["container"]
    #expect(try test.fleet.attest(changed.evidence(), for: test.device).reasons == ["repeated"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a refusal has all reasons and a response code that says which host and properties it stands for`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let app = TestApp(
      salt: 1, image: [UInt8](repeating: 9, count: 32), properties: ["agent", "debugger"], created: TestFleet.now - 301)
    let answer = try test.fleet.attest(app.evidence(), for: test.device)
    #expect(answer.reasons == ["notFresh", "unknownImage", "agent", "debugger"])
    guard case .refused(let refusal) = answer, let code = refusal.code else {
      Issue.record("no response code")
      return
    }
    let meaning = try test.perform("showCode", key: code.description)
    #expect(meaning["properties"]?.elements?.compactMap { $0.text } == ["agent", "debugger"])
    let refusals = try test.list("listRefusals", query: [("code", code.description)])
    #expect(refusals.count == 1)
    #expect(refusals.first?["image"]?.text == hex(app.image))
    #expect(refusals.first?["prover"] == meaning["prover"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `of evidence that is not authentic, only the count is kept`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let forged = TestApp(salt: 1, evidenceKey: [UInt8](repeating: 1, count: 32))
    for _ in 0..<3 { #expect(try test.fleet.attest(forged.evidence(), for: test.device).reasons == ["notAuthentic"]) }
    #expect(try test.list("listRefusals").isEmpty)
    let days = try test.perform("statistics", query: [("days", "1")])["days"]?.elements
    #expect(days?.last?["refused"]?["notAuthentic"]?.number == 3)
  }

  @Test(arguments: TestedDatabase.installed)
  func `an app of another release, of an unknown release and of a withdrawn image is refused`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.fleet.approve(
      fixed(TestApp.image), subject: "app", version: .zero,
      keys: try ReleaseKeys(of: secret([UInt8](repeating: 3, count: 16))), by: test.owner)
    #expect(try test.fleet.attest(TestApp(salt: 1).evidence(), for: test.device).reasons == ["anotherRelease"])
    try test.approve(TestApp.image)
    try test.fleet.withdraw(fixed(TestApp.image), by: test.owner)
    let change = try test.list("listChanges").first
    #expect(change?["action"]?.text == "image.withdraw" && change?["object"]?.text == hex(TestApp.image))
    #expect(try test.fleet.attest(TestApp(salt: 2).evidence(), for: test.device).reasons == ["unknownImage"])
    #expect(try test.fleet.attest([1, 2, 3], for: test.device).reasons == ["notEvidence"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a tree digest counts only where it was approved as one, and never as a flat digest`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let tree = [UInt8](repeating: 0x99, count: 32)
    var salt: UInt8 = 0
    func attest(_ image: [UInt8], _ policy: MeasurementPolicy) throws -> [String] {
      salt += 1
      return try test.fleet.attest(TestApp(salt: salt, image: image, policy: policy).evidence(), for: test.device)
        .reasons
    }
    func approve(_ image: [UInt8], tree: [UInt8]?) throws {
      try test.fleet.approve(
        fixed(image), tree: tree.map { fixed($0) }, subject: "app", version: .zero, keys: try TestApp.keys(),
        by: test.owner)
    }
    // An approval from before has no tree digest.
    #expect(try attest(TestApp.image, []) == [])
    for image in [TestApp.image, tree] { #expect(try attest(image, .treeDigests) == ["unknownImage"]) }
    try approve(TestApp.image, tree: tree)
    #expect(try attest(TestApp.image, []) == [] && attest(tree, .treeDigests) == [])
    #expect(try attest(tree, [.treeDigests, .knownCode]) == [])
    #expect(try attest(tree, []) == ["unknownImage"] && attest(TestApp.image, .treeDigests) == ["unknownImage"])
    let record = try test.perform("showImage", key: hex(TestApp.image))
    #expect(record["tree_digest"]?.text == hex(tree))
    // A tree digest belongs to the executable with which it was approved last.
    let other = [UInt8](repeating: 0x66, count: 32)
    try approve(other, tree: tree)
    try test.fleet.withdraw(fixed(TestApp.image), by: test.owner)
    #expect(try attest(tree, .treeDigests) == [])
    try test.fleet.withdraw(fixed(other), by: test.owner)
    #expect(try attest(tree, .treeDigests) == ["unknownImage"])
    try approve(other, tree: nil)
    #expect(try attest(tree, .treeDigests) == ["unknownImage"] && attest(other, []) == [])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a baseline that permits known code is refused by a policy that does not`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.approve(TestApp.image)
    _ = try test.attest(TestApp(salt: 1, policy: .knownCode))
    var policy = try test.fleet.policy()
    policy.measurementPolicy = []
    try test.fleet.setPolicy(policy, by: test.owner)
    #expect(
      try test.fleet.attest(TestApp(salt: 2, policy: .knownCode).evidence(), for: test.device).reasons == ["knownCode"])
    _ = try test.attest(TestApp(salt: 3))
  }

  @Test(arguments: TestedDatabase.installed)
  func `what one instance approves or withdraws counts at once at another, which has used it before`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let other = try test.instance()
    _ = try test.attest(TestApp(salt: 1), at: other)
    try test.fleet.withdraw(fixed(TestApp.image), by: test.owner)
    #expect(try other.attest(TestApp(salt: 2).evidence(), for: test.device).reasons == ["unknownImage"])
    #expect(try other.attest(TestApp(salt: 1).evidence(), for: test.device).reasons == ["unknownImage"])
    try test.approve(TestApp.image)
    _ = try test.attest(TestApp(salt: 3), at: other)
  }

  @Test(arguments: TestedDatabase.installed)
  func `of many requests at once with one baseline for different devices, one device gets it`(
    database: TestedDatabase
  ) async throws {
    let test = try TestFleet(database)
    let evidence = try TestApp(salt: 1).evidence()
    let devices = try (1...8).map { try TestFleet.device($0) }
    let fleet = test.fleet
    let attested = try await withThrowingTaskGroup(of: Bool.self) { group in
      for device in devices {
        group.addTask { if case .attested = try fleet.attest(evidence, for: device) { true } else { false } }
      }
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(attested == 1)
  }
}
