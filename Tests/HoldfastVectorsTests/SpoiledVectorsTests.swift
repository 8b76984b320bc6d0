import HoldfastFormats
import HoldfastVectors
import TestSupport
import Testing

/// A replay that passes says something only if it fails for every wrong value.
@Suite struct SpoiledVectorsTests {
  /// Values that inform a reader, that may be other ones, or of which a record has a part.
  private static let unread = ["th", "expires", "fieldByteLimit", "name"]
  /// Values that are malformed when they are changed. With a false encoding 0 the remembered token is missing.
  private static let malformed = ["encoding", "code", "purpose", "user", "methods", "transport", "parameters"]

  @Test(
    arguments: [
      ("measurement_test.json", "Measurement"), ("measurement_test.json", "ReleaseKeys"),
      ("measurement_test.json", "Evidence"), ("proof_test.json", "Proof"),
      ("measurement_token_test.json", "MeasurementTokenCOSE"), ("measurement_token_test.json", "MeasurementTokenJOSE"),
      ("session_test.json", "SessionRound"), ("activation_test.json", "OneUseCode"),
      ("activation_test.json", "Activation"), ("activation_test.json", "ActivationAtDevice"),
      ("activation_test.json", "Unlocking"), ("activation_test.json", "HostCodeResult"),
      ("seal_test.json", "SealFields"),
      ("seal_test.json", "SealQuestion"), ("seal_test.json", "Seal"), ("seal_test.json", "SealRequest"),
      ("audit_test.json", "AuditFile"), ("audit_page_test.json", "AuditPage"), ("audit_page_test.json", "AuditReceipt"),
      ("bulletin.json", "Bulletin"), ("bulletin.json", "BulletinState"),
      ("bulletin.json", "BulletinGroup"), ("state_test.json", "StoreState"), ("state_test.json", "UndoCode"),
      ("attestation_token_test.json", "AttestationToken"),
      ("service_discovery_test.json", "ServiceRecord"),
      ("frames_test.json", "Frames"), ("firmware_image_test.json", "FirmwareImage"),
    ], [0.0, 0.5, 1.0])
  func `a valid test fails when any of its values is changed`(file: (name: String, type: String), place: Double) throws
  {
    let root = try committedFile(file.name)
    let names = root.testMembers(ofType: file.type).filter {
      !["tcId", "comment", "flags", "result", "layer", "claims"].contains($0) && !Self.unread.contains($0)
    }
    for name in names {
      let spoiled = root.keepingTests { type, test in
        guard type == file.type, test["result"] == .string("valid"), let value = test[name]?.spoiled(at: place) else {
          return false
        }
        test[name] = value
        return true
      }
      expectNothingPasses(spoiled, "\(file.type).\(name)", mayBeMalformed: Self.malformed.contains(name))
    }
  }

  @Test(arguments: ["MeasurementTokenCOSE", "MeasurementTokenJOSE"])
  func `a valid token fails when any of its claims is changed, left out or made up`(type: String) throws {
    let root = try committedFile("measurement_token_test.json")
    let additions: [(String, JSONValue)] = [
      ("maximumUses", .integer(3)), ("commands", .array([])), ("user", .string("")),
      ("version", .array([.integer(0), .integer(0), .integer(1)])),
    ]
    // The same to a device as no version at all.
    let noVersion = JSONValue.array([.integer(0), .integer(0), .integer(0)])
    for name in try claimNames(of: root, type: type) {
      let spoiled = root.keepingTests { $0 == type && changeClaims(of: &$1) { $0[name] = $0[name]?.spoiled(at: 0.5) } }
      expectNothingPasses(spoiled, "\(type), \(name) changed")
      let shortened = root.keepingTests { testType, test in
        guard testType == type, name != "version" || test["claims"]?["version"] != noVersion else { return false }
        return changeClaims(of: &test) { $0[name] = nil }
      }
      expectNothingPasses(shortened, "\(type), \(name) left out", mayBeMalformed: true)
    }
    for (name, value) in additions {
      let extended = root.keepingTests {
        $0 == type && changeClaims(of: &$1) { if $0[name] == nil { $0[name] = value } }
      }
      expectNothingPasses(extended, "\(type), \(name) made up")
    }
  }

  @Test func `a valid bulletin fails when any of its claims is changed or left out`() throws {
    let root = try committedFile("bulletin.json")
    let names = try claimNames(of: root, type: "Bulletin", count: 10)
    for name in names {
      let spoiled = root.keepingTests {
        $0 == "Bulletin" && changeClaims(of: &$1) { $0[name] = $0[name]?.spoiled(at: 0.5) }
      }
      expectNothingPasses(spoiled, "\(name) changed")
      let shortened = root.keepingTests { $0 == "Bulletin" && changeClaims(of: &$1) { $0[name] = nil } }
      expectNothingPasses(shortened, "\(name) left out")
    }
  }

  @Test(arguments: ["cut", "after", "head", "entries", "count", "last"])
  func `a valid page fails when what it gives is changed`(name: String) throws {
    let spoiled = try committedFile("audit_page_test.json").keepingTests { _, test in
      guard let page = test["page"], let value = page[name]?.spoiled(at: 0.5) else { return false }
      test["page"] = page.changed { $0[name] = value }
      return true
    }
    expectNothingPasses(spoiled, name)
  }

  @Test(arguments: CommittedVectorsTests.names)
  func `a test fails when its result is turned around`(name: String) throws {
    let root = try committedFile(name)
    let claims = try firstClaims(in: root)
    let turned = root.keepingTests { _, test in
      let isValid = test["result"] == .string("valid")
      test["result"] = .string(isValid ? "invalid" : "valid")
      if !isValid, test["claims"] == nil { test["claims"] = claims }
      return true
    }
    // An invalid test of some areas lacks what a valid one must give, which is a fault in that test.
    let report = try VectorFile(parsing: turned.compact(), name: name).replay()
    #expect(report.passed == 0)
    #expect(report.failed > 0)
  }

  @Test(arguments: ["deviceId", "deviceKid", "devicePublicKey", "devicePrivateKey", "issuerPublicKey", "issuerKid"])
  func `a group whose keys and ids do not belong together is not replayed as if they did`(name: String) throws {
    let root = try committedFile("session_test.json").keepingTests { type, test in
      type == "SessionRound" && test["result"] == .string("valid")
    }
    let spoiled = root.changed { file in
      file["testGroups"] = .array(
        (file["testGroups"]?.elements ?? []).map { $0.changed { $0[name] = $0[name]?.spoiled(at: 1) } })
    }
    expectNothingPasses(spoiled, name, mayBeMalformed: name != "deviceId")
  }

  @Test(arguments: ["macKey", "macKid"])
  func `a group's MAC key has its id, and neither comes without the other`(name: String) throws {
    let root = try committedFile("measurement_token_test.json")
    for value in [JSONValue.string(String(repeating: "ab", count: name == "macKey" ? 32 : 8)), nil] {
      let spoiled = root.changed { file in
        file["testGroups"] = .array(
          (file["testGroups"]?.elements ?? []).filter { $0["macKid"] != nil }.map { $0.changed { $0[name] = value } })
      }
      #expect(throws: VectorFault.self) { try replay(spoiled) }
    }
  }

  @Test func `under a policy that takes no MAC, the same tokens are refused`() throws {
    let root = try committedFile("measurement_token_test.json").keepingTests { _, test in
      test["result"] == .string("valid") && test["comment"] == .string("required claims only")
    }
    func report(acceptMac: Bool) throws -> Int {
      let groups = (root["testGroups"]?.elements ?? []).filter { $0["acceptMac"] == .bool(true) }
      #expect(groups.count == 1)
      return try replay(
        root.changed { file in
          file["numberOfTests"] = .integer(1)
          file["testGroups"] = .array(groups.map { $0.changed { $0["acceptMac"] = .bool(acceptMac) } })
        }
      ).passed
    }
    #expect(try report(acceptMac: true) == 1)
    #expect(try report(acceptMac: false) == 0)
  }

  /// Replays a file in which no test may pass; to be malformed may be as good.
  private func expectNothingPasses(_ file: JSONValue, _ comment: String, mayBeMalformed: Bool = false) {
    guard file["numberOfTests"] != .integer(0) else { return }
    do throws(VectorFault) {
      let report = try replay(file)
      #expect(report.passed == 0, "\(comment)")
      #expect(report.skipped == 0, "\(comment)")
      #expect(report.failed > 0, "\(comment)")
    } catch { #expect(mayBeMalformed, "\(comment): \(error)") }
  }

  /// Changes the claims of a valid test; false when that leaves them as they are.
  private func changeClaims(of test: inout Members, _ change: (inout Members) -> Void) -> Bool {
    guard test["result"] == .string("valid"), let claims = test["claims"] else { return false }
    let changed = claims.changed(change)
    guard changed != claims else { return false }
    test["claims"] = changed
    return true
  }

  private func claimNames(of root: JSONValue, type: String, count: Int = 14) throws -> [String] {
    var names: [String] = []
    _ = root.keepingTests { testType, test in
      guard testType == type else { return false }
      for (name, _) in test["claims"]?.members ?? [] where !names.contains(name) { names.append(name) }
      return false
    }
    try #require(names.count == count)
    return names
  }

  private func firstClaims(in root: JSONValue) throws -> JSONValue? {
    var claims: JSONValue?
    _ = root.keepingTests { _, test in
      claims = claims ?? test["claims"]
      return false
    }
    return claims
  }
}
