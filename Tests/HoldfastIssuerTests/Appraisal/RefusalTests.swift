import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// The reasons why an app is not approved, all of them at once.
@Suite struct RefusalTests {
  private var parties: Parties

  init() throws { parties = try Parties() }

  /// Evidence whose MAC is right, of an app that claims a name and a version, with a debugger.
  private func evidence(isComplete: Bool) throws -> Evidence {
    let (app, device) = (try parties.components("app"), try parties.components("device"))
    let least = isComplete ? app : app.filter { $0.id.description == "app.image" }
    let old = try parties.configuration()
    let configuration = try MeasurementConfiguration(
      salt: old.salt, mpkID: old.mpkID, appIDs: least.map(\.id), deviceIDs: device.map(\.id), created: old.created,
      policy: .knownCode)
    var parties = parties
    parties.properties = ["debugger"]
    let bytes = try parties.evidence(
      configuration: configuration, app: least, device: device, subject: "other",
      version: AppVersion(major: 9, minor: 9, patch: 9))
    let keys = try StoreInMemory.release(parties.releaseKeys)
    return try #require(try SubmittedEvidence(bytes).authentic(with: keys))
  }

  private func refusals(
    _ evidence: Evidence, _ approved: ApprovedImage?, permitting measuring: MeasurementPolicy = [], now: UInt64?
  ) -> [AttestationRefusal] {
    evidence.refusals(
      approved, defaultKey: KeyID(), refusing: ["debugger"], permitting: measuring, now: now)
  }

  @Test func `every reason that applies is reported, in one order`() throws {
    let approved = parties.image(proofKey: KeyID(filledWith: 3))
    let (version, claimed) = (approved.version, AppVersion(major: 9, minor: 9, patch: 9))
    #expect(
      try refusals(evidence(isComplete: false), approved, now: parties.now + 301) == [
        .notFresh, .incomplete, .anotherRelease, .subject(claimed: "other", approved: "example-app"),
        .version(claimed: claimed, approved: version), .property("debugger"), .knownCode,
      ])
    let own = parties.image(subject: "other", version: claimed, proofKey: try parties.configuration().mpkID)
    let whole = try evidence(isComplete: true)
    #expect(refusals(whole, own, permitting: .knownCode, now: parties.now) == [.property("debugger")])
    #expect(refusals(whole, own, permitting: .knownCode, now: nil) == [.property("debugger")])
  }

  @Test func `the approval of another image approves nothing, whatever it says of names and keys`() throws {
    let own = try parties.configuration().mpkID
    let other = ApprovedImage(
      digest: Digest(filledWith: 1), subject: "other", version: AppVersion(major: 9, minor: 9, patch: 9), proofKey: own)
    let whole = try evidence(isComplete: true)
    for approved in [other, nil] {
      #expect(
        refusals(whole, approved, permitting: .knownCode, now: parties.now) == [.unknownImage, .property("debugger")])
    }
  }
}
