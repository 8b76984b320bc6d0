import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct AttestationServiceTests {
  var parties: Parties

  init() throws {
    parties = try Parties()
  }

  /// The claims of a token, as JSON text.
  private func claims(_ appraisal: Appraisal, _ parties: Parties) throws -> AttestationClaims {
    guard case .approved(let token, _) = appraisal else { throw UnreadableFile() }
    var cryptography = OpenSSLCryptography()
    var encryption = try parties.encryptionKey()
    let signed = try encryption.open(token.span, contentType: "JWT")
    let payload = try parties.signingKey().verify(signed.bytes, type: "holdfast-at+jwt", using: &cryptography)
    return try AttestationClaims.read(payload.bytes)
  }

  @Test(arguments: [ServiceFolder.AttestationSignature.hs256, .es256])
  func `the example's evidence gives a token with the example's measurements`(
    signature: ServiceFolder.AttestationSignature
  ) throws {
    var parties = parties
    parties.signature = signature
    let claims = try claims(parties.appraise(), parties)
    let integrity = claims.integrity.withBytes { $0.array }
    let device = claims.device.withBytes { $0.array }
    let proofKey = claims.proofKey.withBytes { $0.array }
    #expect(hex(integrity) == parties.example.text("measurement.im"))
    #expect(hex(device) == parties.example.text("measurement.dm"))
    #expect(hex(proofKey) == parties.example.text("measurement.mpk"))
    #expect(claims.issuedAt == parties.now)
    #expect(claims.expires == parties.now + 300)
    #expect(claims.audience.description == "api.example")
    #expect(claims.subject?.description == "example-app")
    #expect(claims.version == AppVersion(major: 1, minor: 2, patch: 3))
  }

  @Test func `the token is bound to device id and key`() throws {
    let claims = try claims(parties.appraise(), parties)
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(parties.example.deviceID.bytes)
    let point = parties.example.bytes("keys.device_point")
    hash.append(point.span)
    #expect(try hash.finish() == claims.binding)
  }

  @Test func `with a hash of the app's data, the token is bound to device and data together`() throws {
    let data: Digest = fixed([UInt8](repeating: 7, count: 32))
    var service = try parties.service()
    var random = SystemRandom()
    let evidence = try parties.evidence()
    let appraisal = try service.appraise(
      evidence.span, for: parties.device(), hash: data, clock: TestClock(seconds: parties.now), random: &random)
    let bound = try claims(appraisal, parties).binding
    let plain = try claims(parties.appraise(), parties).binding
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    let label = Array("holdfast/1 binding\0".utf8)
    hash.append(label.span)
    hash.append(plain.bytes)
    hash.append(data.bytes)
    #expect(try hash.finish() == bound)
    #expect(bound != plain)
  }

  @Test func `the device's name and the response code stay the same, and depend on the account`() throws {
    let first = try claims(parties.appraise(), parties)
    let second = try claims(parties.appraise(), parties)
    #expect(first.deviceID == second.deviceID)
    #expect(first.responseCode == second.responseCode)
    #expect(first.responseCode.bytes.count == 10)
    var cryptography = OpenSSLCryptography()
    let secret = [UInt8](repeating: 1, count: 32)
    let other = AccountDerivations(account: SecretBytes(copying: secret.span))
    #expect(try other.deviceID(of: parties.components("device"), using: &cryptography) != first.deviceID)
    let code = try other.responseCode(device: first.deviceID, properties: [], using: &cryptography)
    #expect(code != first.responseCode)
  }

  // Computed in Python with the account secret of 32 zero bytes, only from the formulas.
  @Test func `the name of the example's host and its response codes are those that were computed elsewhere`() throws {
    var parties = parties
    for (properties, code) in [([], "5HMOIC5CI2"), (["container"], "GW24CR3JBX")] as [([BoundedText<32>], String)] {
      parties.properties = properties
      let claims = try claims(parties.appraise(), parties)
      #expect(hex(claims.deviceID.bytes) == "2fbb72647b092c907af805ffb6a4d68f")
      #expect(claims.responseCode.description == code)
    }
  }

  @Test(arguments: [UInt64(300), 0]) func `a baseline of up to five minutes before or after now is fresh`(
    distance: UInt64
  ) throws {
    guard case .approved = try parties.appraise(at: parties.now + distance) else {
      Issue.record("refused")
      return
    }
    guard case .approved = try parties.appraise(at: parties.now - distance) else {
      Issue.record("refused")
      return
    }
  }

  @Test func `an older baseline is refused, and one from the future`() throws {
    #expect(try parties.appraise(at: parties.now + 301) == .refused(.notFresh))
    #expect(try parties.appraise(at: parties.now - 301) == .refused(.notFresh))
  }

  @Test func `evidence that is made with another key than it names is refused`() throws {
    let evidence = try parties.evidence(authenticatedWith: [UInt8](repeating: 7, count: 32))
    #expect(try parties.appraise(evidence) == .refused(.notAuthentic))
  }

  @Test func `who has the measurement proof key, as every token gives it away, can forge no evidence`() throws {
    let claims = try claims(parties.appraise(), parties)
    let proofKey = claims.proofKey.withBytes { $0.array }
    for forged in [proofKey + [UInt8](repeating: 0, count: 16), proofKey + proofKey] {
      let evidence = try parties.evidence(authenticatedWith: forged)
      #expect(try parties.appraise(evidence) == .refused(.notAuthentic))
    }
    #expect(!parties.releaseKeys.suffix(32).elementsEqual(proofKey + proofKey))
  }

  @Test func `name and version come from the policy, by the image, and a claim that differs is refused`() throws {
    let (older, newer) = (AppVersion(major: 1, minor: 2, patch: 3), AppVersion(major: 9, minor: 9, patch: 9))
    let agreeing = try parties.evidence(subject: "example-app", version: older)
    let claims = try claims(parties.appraise(agreeing), parties)
    #expect(claims.subject?.description == "example-app")
    #expect(claims.version == older)
    #expect(
      try parties.appraise(parties.evidence(subject: "the-ceo's app"))
        == .refused(.subject(claimed: parties.text("the-ceo's app"), approved: parties.text("example-app"))))
    #expect(
      try parties.appraise(parties.evidence(version: newer)) == .refused(.version(claimed: newer, approved: older)))
    #expect(
      try parties.appraise(parties.evidence(version: .zero)) == .refused(.version(claimed: .zero, approved: older)))
  }

  @Test func `evidence that names an unknown key is refused`() throws {
    let old = try parties.configuration()
    let configuration = try MeasurementConfiguration(
      salt: old.salt, mpkID: KeyID(), appIDs: old.appIDs, deviceIDs: old.deviceIDs, created: old.created)
    let evidence = try parties.evidence(configuration: configuration)
    #expect(try parties.appraise(evidence) == .refused(.unknownProofKey))
  }

  @Test func `a flipped bit anywhere is refused`() throws {
    let evidence = try parties.evidence()
    for index in stride(from: 0, to: evidence.count, by: 7) {
      var changed = evidence
      changed[index] ^= 1
      do throws(AttestationFault) {
        var service = try! parties.service()
        var random = SystemRandom()
        let appraisal = try service.appraise(
          changed.span, for: try! parties.device(), clock: TestClock(seconds: parties.now), random: &random)
        guard case .refused = appraisal else {
          Issue.record("approved at \(index)")
          continue
        }
      } catch {
        #expect(error == .malformed)
      }
    }
  }

  @Test func `an image that is not named is refused`() throws {
    var parties = parties
    parties.policy.images = [ApprovedImage(digest: Digest(), subject: parties.text("example-app"), version: .zero)]
    #expect(try parties.appraise() == .refused(.unknownImage))
    parties.policy.images = []
    #expect(try parties.appraise() == .refused(.unknownImage))
  }

  @Test func `evidence with tree digests counts only for an image that is approved with its tree digest`() throws {
    var parties = parties
    let plain = try parties.configuration()
    let configuration = try MeasurementConfiguration(
      salt: plain.salt, mpkID: plain.mpkID, appIDs: plain.appIDs, deviceIDs: plain.deviceIDs, created: plain.created,
      policy: .treeDigests)
    // Its component app.image is the flat digest of the example, as a tree digest.
    let evidence = try parties.evidence(configuration: configuration)
    let (flat, other) = (parties.image().digest, Digest(filledWith: 1))
    func appraise(_ digest: Digest, tree: Digest?, _ evidence: [UInt8]? = nil) throws -> Bool {
      parties.policy.images = [
        ApprovedImage(
          digest: digest, tree: tree, subject: "example-app", version: parties.image().version, proofKey: plain.mpkID)
      ]
      let appraisal = try parties.appraise(evidence)
      if case .approved = appraisal { return true }
      #expect(appraisal == .refused(.unknownImage))
      return false
    }
    #expect(try !appraise(flat, tree: nil, evidence) && !appraise(flat, tree: other, evidence))
    #expect(try appraise(other, tree: flat, evidence))
    #expect(try !appraise(other, tree: flat) && appraise(flat, tree: other))
  }

  @Test func `evidence counts only for images of the release whose keys it has`() throws {
    var parties = parties
    let own = try parties.configuration().mpkID
    for other in [nil, KeyID()] {
      parties.policy.images = [parties.image(proofKey: other)]
      #expect(try parties.appraise() == .refused(.anotherRelease))
    }
    parties.policy.images = [parties.image(proofKey: own)]
    guard case .approved = try parties.appraise() else {
      Issue.record("refused")
      return
    }
  }

  @Test(arguments: ["debugger", "injection", "agent"]) func `a refused property is refused`(name: String) throws {
    var parties = parties
    parties.properties = [parties.text(name)]
    #expect(try parties.appraise() == .refused(.property(parties.text(name))))
    parties.policy.refusedProperties = []
    guard case .approved = try parties.appraise() else {
      Issue.record("refused")
      return
    }
  }

  @Test func `a baseline that permits known code is approved, unless the policy refuses known code`() throws {
    var parties = parties
    let (app, device) = (try parties.components("app"), try parties.components("device"))
    func appraise() throws -> Appraisal {
      let old = try parties.configuration()
      let configuration = try MeasurementConfiguration(
        salt: old.salt, mpkID: old.mpkID, appIDs: app.map { $0.id }, deviceIDs: device.map { $0.id },
        created: old.created, policy: .knownCode)
      return try parties.appraise(parties.evidence(configuration: configuration, app: app, device: device))
    }
    guard case .approved = try appraise() else {
      Issue.record("refused")
      return
    }
    parties.policy.measurementPolicy = []
    #expect(try appraise() == .refused(.knownCode))
    guard case .approved = try parties.appraise() else {
      Issue.record("a baseline without the permission is refused")
      return
    }
  }

  @Test func `a property that policy does not name is no matter`() throws {
    var parties = parties
    parties.properties = [parties.text("container")]
    guard case .approved = try parties.appraise() else {
      Issue.record("refused")
      return
    }
  }

  @Test func `a baseline without one of the components is refused`() throws {
    for (scope, missing) in [("app", "app.debug"), ("app", "app.image"), ("device", "device.secret")] {
      let old = try parties.configuration()
      let app = try parties.components("app").filter { $0.id.description != missing }
      let device = try parties.components("device").filter { $0.id.description != missing }
      let configuration = try MeasurementConfiguration(
        salt: old.salt, mpkID: old.mpkID, appIDs: app.map { $0.id }, deviceIDs: device.map { $0.id },
        created: old.created)
      let evidence = try parties.evidence(configuration: configuration, app: app, device: device)
      #expect(try parties.appraise(evidence) == .refused(.incomplete), "\(scope) \(missing)")
    }
  }

  @Test func `a baseline is approved once`() throws {
    var service = try parties.service()
    var random = SystemRandom()
    let evidence = try parties.evidence()
    let clock = TestClock(seconds: parties.now)
    let first = try service.appraise(evidence.span, for: parties.device(), clock: clock, random: &random)
    guard case .approved = first else {
      Issue.record("refused")
      return
    }
    let second = try service.appraise(evidence.span, for: parties.device(), clock: clock, random: &random)
    #expect(second == .refused(.repeated))
  }

  @Test func `without a clock, a record or randomness nothing is approved`() throws {
    let evidence = try parties.evidence()
    let device = try parties.device()
    var random = SystemRandom()
    var service = try parties.service()
    #expect(throws: AttestationFault.noClock) {
      _ = try service.appraise(evidence.span, for: device, clock: TestClock(seconds: nil), random: &random)
    }
    var failing = try parties.service(MemorySeen(fails: true))
    let clock = TestClock(seconds: parties.now)
    #expect(throws: AttestationFault.ledger(ServiceLedgerFault())) {
      _ = try failing.appraise(evidence.span, for: device, clock: clock, random: &random)
    }
    var dry = ListedRandom(bytes: [])
    #expect(throws: AttestationFault.cryptography) {
      _ = try service.appraise(evidence.span, for: device, clock: clock, random: &dry)
    }
  }
}
