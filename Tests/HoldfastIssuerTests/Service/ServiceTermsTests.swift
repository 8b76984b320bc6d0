import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct ServiceTermsTests {
  private let temporary: TemporaryFolder
  private let parties: Parties

  init() throws {
    temporary = try TemporaryFolder()
    parties = try Parties()
  }

  private func issued(_ policy: ServicePolicy, _ point: inout P256Point?) throws -> IssuedToken {
    let keys = parties.releaseKeys
    let folder = try ServiceFolder.create(at: temporary.path + "/S", releaseKeys: keys.span, policy: policy)
    point = try folder.issuerKey().point
    var random = SystemRandom()
    let clock = TestClock(seconds: parties.now)
    let evidence = try parties.evidence()
    var service = try folder.attestationService()
    let appraisal = try service.appraise(evidence.span, for: parties.device(), clock: clock, random: &random)
    guard case .approved(let token, _) = appraisal else { throw UnreadableFile() }
    var backend = try folder.backend()
    let issuance = try backend.issue(attestation: token.span, for: parties.device(), clock: clock, random: &random)
    guard case .issued(let issued) = issuance else { throw UnreadableFile() }
    return issued
  }

  @Test func `a policy without conditions gives no terms`() throws {
    var point: P256Point?
    #expect(try issued(parties.policy, &point).terms == nil)
  }

  @Test func `the terms are signed by the issuer and name the token`() throws {
    var policy = parties.policy
    policy.conditions.offlineSeconds = 3600
    policy.conditions.settings = AppSettings(.text, Array("a=1".utf8))
    var point: P256Point?
    let token = try issued(policy, &point)
    let signed = try SignedTerms(verifying: try #require(token.terms))
    #expect(signed.key.point == point)
    #expect(signed.terms.conditions == policy.conditions)
    #expect(signed.terms.issued == parties.now)
    #expect(signed.terms.tokenDigest == (try Terms.digest(of: token.bytes)))
  }

  @Test func `a policy with conditions is read as it was written`() throws {
    var policy = parties.policy
    let version = try #require(DottedVersion("12"))
    policy.conditions.offlineSeconds = 1
    policy.conditions.settings = AppSettings(.bytes, [1, 2, 3])
    policy.conditions.rules = [try #require(ComplianceRule(.os, .greater, [version], otherwise: .wipe))]
    #expect(try ServicePolicy(json: policy.json.pretty()) == policy)
  }
}
