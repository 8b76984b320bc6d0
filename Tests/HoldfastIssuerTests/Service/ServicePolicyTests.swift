import HoldfastCore
import HoldfastJSON
import Testing

@testable import HoldfastIssuer

@Suite struct ServicePolicyTests {
  private let least = #""issuer":"i","attestation_issuer":"a","audience":"u","image_digests":[]"#

  private func read(_ text: String) throws(ServicePolicyFault) -> ServicePolicy {
    try ServicePolicy(json: Array(text.utf8))
  }

  @Test func `a policy reads back what it writes`() throws {
    var policy = ServicePolicy()
    #expect(try ServicePolicy(json: policy.json.pretty()) == policy)
    policy.imageDigests = [Digest(), Digest()]
    policy.commands = []
    policy.maximumUses = 3
    #expect(try ServicePolicy(json: policy.json.compact()) == policy)
  }

  @Test func `what is left out has its default`() throws {
    let policy = try read("{\(least)}")
    #expect(policy.refusedProperties.map { $0.description } == ["debugger", "injection", "agent"])
    #expect(policy.attestationSeconds == 300)
    #expect(policy.tokenSeconds == 7_776_000)
    #expect(policy.commands == nil)
    #expect(policy.maximumUses == nil)
    #expect(policy.imageDigests.isEmpty)
  }

  @Test func `an unknown member is refused by name`() {
    #expect(throws: ServicePolicyFault.member("image_digest")) { try read("{\(least),\"image_digest\":[]}") }
  }

  @Test(arguments: ["issuer", "attestation_issuer", "audience", "image_digests"])
  func `a member that is required is missed`(name: String) throws {
    let members = try JSONValue(parsing: Array("{\(least)}".utf8), byteLimit: 1000).members ?? []
    let shorter = JSONValue.object(members.filter { $0.0 != name }).compact()
    #expect(throws: ServicePolicyFault.member(name)) { try ServicePolicy(json: shorter) }
  }

  @Test(arguments: [
    (#""token_seconds":0"#, "token_seconds"), (#""token_seconds":"1""#, "token_seconds"),
    (#""attestation_seconds":3601"#, "attestation_seconds"), (#""maximum_uses":0"#, "maximum_uses"),
    (#""maximum_uses":null"#, "maximum_uses"), (#""commands":"unlock""#, "commands"),
    (#""commands":[1]"#, "commands"), (#""subject":"""#, "subject"),
    (#""refused_properties":{}"#, "refused_properties"),
    (#""commands":["012345678901234567890123456789012"]"#, "commands"),
  ])
  func `a member of another kind, or out of range, is refused by name`(member: String, name: String) {
    #expect(throws: ServicePolicyFault.member(name)) { try read("{\(least),\(member)}") }
  }

  @Test(arguments: ["", "[]", "{", "{\"issuer\":1,\"issuer\":2}"]) func `what is no JSON object is malformed`(
    text: String
  ) {
    #expect(throws: ServicePolicyFault.malformed) { try read(text) }
  }

  @Test func `a digest must be 64 lower-case hexadecimal digits`() {
    let text = #"{"issuer":"i","attestation_issuer":"a","audience":"u","image_digests":["AB"]}"#
    #expect(throws: ServicePolicyFault.member("image_digests")) { try read(text) }
  }
}
