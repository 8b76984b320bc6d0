import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct ServicePolicyTests {
  private let least = #""issuer":"i","attestation_issuer":"a","audience":"u","images":{}"#

  private func read(_ text: String) throws(ServicePolicyFault) -> ServicePolicy {
    try ServicePolicy(json: Array(text.utf8))
  }

  /// The way to the member that is wrong; nil where another thing is, or nothing.
  private func wrongMember(_ text: String) -> String? {
    do throws(ServicePolicyFault) { _ = try read(text) } catch {
      guard case .member(let mistake) = error else { return nil }
      return mistake.line == 1 ? mistake.pathText : nil
    }
    return nil
  }

  private func isMalformed(_ text: String) -> Bool {
    do throws(ServicePolicyFault) { _ = try read(text) } catch {
      if case .malformed = error { return true }
    }
    return false
  }

  @Test func `a policy reads back what it writes`() throws {
    var policy = ServicePolicy()
    #expect(try ServicePolicy(json: policy.json.pretty()) == policy)
    policy.images = [
      ApprovedImage(
        digest: Digest(), subject: BoundedText("an app" as StaticString),
        version: AppVersion(major: 1, minor: 0, patch: maximumInteger)),
      ApprovedImage(
        digest: Digest(filledWith: 1), subject: BoundedText("another" as StaticString), version: .zero,
        proofKey: KeyID(filledWith: 2)),
      ApprovedImage(
        digest: Digest(filledWith: 3), tree: Digest(filledWith: 4), subject: BoundedText("a third" as StaticString),
        version: .zero, proofKey: KeyID(filledWith: 2)),
    ]
    policy.devices = .firstCome
    policy.subject = BoundedText("others" as StaticString)
    policy.commands = []
    policy.maximumUses = 3
    policy.measurementPolicy = []
    policy.scopedSettings = [
      ScopedSettings(app: "an app", version: .zero, device: nil, settings: AppSettings(.text, [0x61])!)!
    ]
    policy.givesDecoys = true
    policy.features.secureStrings = true
    policy.features.messageSigning = true
    #expect(try ServicePolicy(json: policy.json.compact()) == policy)
  }

  @Test func `makers of devices are public keys in DER, and only for devices that are registered`() throws {
    let makers = try (1...2).map { _ in try P256PrivateKey().publicPoint }
    var policy = ServicePolicy()
    policy.deviceMakers = makers
    let read = try ServicePolicy(json: policy.json.compact())
    #expect(read == policy && read.deviceMakers == makers)
    let text = SubjectPublicKeyInfo.base64(of: makers[0])
    #expect(wrongMember(#"{\#(least),"device_makers":["\#(text)"]}"#) == nil)
    let last = text.dropLast(4)
    for wrong in ["", String(last), text + text, String(text.reversed()), last + "AAA=", last + "////"] {
      #expect(wrongMember(#"{\#(least),"device_makers":["\#(wrong)"]}"#) == "device_makers[0]", "\(wrong)")
    }
    let many = (0..<17).map { _ in #""\#(text)""# }.joined(separator: ",")
    #expect(wrongMember(#"{\#(least),"device_makers":[\#(many)]}"#) == "device_makers")
    #expect(wrongMember(#"{\#(least),"devices":"first-come","device_makers":["\#(text)"]}"#) == "device_makers")
    #expect(wrongMember(#"{\#(least),"devices":"first-come","device_makers":[]}"#) == nil)
  }

  @Test(arguments: ["\"00\"", "1", "null", "\"\(String(repeating: "g", count: 64))\""])
  func `a tree digest that is none is refused by name`(value: String) {
    let least = #""issuer":"i","attestation_issuer":"a","audience":"b""#
    let image =
      "\"\(String(repeating: "0", count: 64))\":{\"subject\":\"s\",\"version\":[1,2,3],\"tree_digest\":\(value)}"
    #expect(wrongMember("{\(least),\"images\":{\(image)}}")?.hasSuffix("tree_digest") == true)
  }

  @Test func `what is left out has its default`() throws {
    let policy = try read("{\(least)}")
    #expect(policy.refusedProperties.map { $0.description } == ["debugger", "injection", "agent"])
    #expect(policy.attestationSeconds == 300)
    #expect(policy.tokenSeconds == 7_776_000)
    #expect(policy.commands == nil)
    #expect(policy.maximumUses == nil)
    #expect(policy.images.isEmpty)
    #expect(policy.devices == .listed)
    #expect(policy.subject == nil)
    #expect(policy.measurementPolicy == .knownCode)
    #expect(
      policy.json.members?.map(\.0) == [
        "issuer", "attestation_issuer", "audience", "images", "devices", "refused_properties", "attestation_seconds",
        "token_seconds",
      ])
  }

  @Test func `each number has its least and greatest value, and a list its greatest length`() throws {
    func policy(_ name: String, _ value: UInt64) throws -> ServicePolicy {
      try read("{\(least),\"\(name)\":\(value)}")
    }
    for value: UInt64 in [1, 3600] { #expect(try policy("attestation_seconds", value).attestationSeconds == value) }
    for value: UInt64 in [1, 316_224_000] { #expect(try policy("token_seconds", value).tokenSeconds == value) }
    #expect(wrongMember("{\(least),\"attestation_seconds\":0}") == "attestation_seconds")
    #expect(wrongMember("{\(least),\"token_seconds\":316224001}") == "token_seconds")
    for value in [1, maximumInteger] { #expect(try policy("maximum_uses", value).maximumUses == value) }
    let commands = Array(repeating: "\"a\"", count: 16).joined(separator: ",")
    #expect(try read("{\(least),\"commands\":[\(commands)]}").commands?.count == 16)
    let maker = "\"" + SubjectPublicKeyInfo.base64(of: try P256PrivateKey().publicPoint) + "\""
    let makers = Array(repeating: maker, count: 16).joined(separator: ",")
    #expect(try read("{\(least),\"device_makers\":[\(makers)]}").deviceMakers.count == 16)
  }

  @Test func `an unknown member is refused by name`() {
    #expect(wrongMember("{\(least),\"image_digest\":[]}") == "image_digest")
  }

  @Test(arguments: ["issuer", "attestation_issuer", "audience", "images"])
  func `a member that is required is missed`(name: String) throws {
    let members = try JSONValue(parsing: Array("{\(least)}".utf8), byteLimit: 1000).members ?? []
    let shorter = JSONValue.object(members.filter { $0.0 != name }).compact()
    #expect(wrongMember(String(decoding: shorter, as: UTF8.self)) == name)
  }

  @Test(arguments: [
    (#""token_seconds":0"#, "token_seconds"), (#""token_seconds":"1""#, "token_seconds"),
    (#""attestation_seconds":3601"#, "attestation_seconds"), (#""maximum_uses":0"#, "maximum_uses"),
    (#""maximum_uses":null"#, "maximum_uses"), (#""commands":"unlock""#, "commands"),
    (#""commands":[1]"#, "commands[0]"),
    ("\"commands\":[\(Array(repeating: "\"a\"", count: 17).joined(separator: ","))]", "commands"),
    (#""subject":"""#, "subject"),
    (#""refused_properties":{}"#, "refused_properties"), (#""known_code":0"#, "known_code"),
    (#""devices":"all""#, "devices"), (#""devices":["listed"]"#, "devices"), (#""devices":null"#, "devices"),
    (#""devices":"LISTED""#, "devices"),
    (#""commands":["012345678901234567890123456789012"]"#, "commands[0]"), (#""commands":[""]"#, "commands[0]"),
  ])
  func `a member of another kind, or out of range, is refused by name`(member: String, name: String) {
    #expect(wrongMember("{\(least),\(member)}") == name)
  }

  @Test(arguments: ["", "{", "{\"issuer\":1,\"issuer\":2}"]) func `what is no JSON object is malformed`(
    text: String
  ) {
    #expect(isMalformed(text))
  }

  private static let digits = String(repeating: "0a", count: 32)

  @Test(arguments: [
    ("[]", ""), ("null", ""), ("\"x\"", ""), (#"{"AB":{}}"#, ".AB"),
    ("{\"\(digits.uppercased())\":{\"subject\":\"a\",\"version\":[1,2,3]}}", "." + digits.uppercased()),
    ("{\"\(digits)\":[]}", "." + digits),
    ("{\"\(digits)\":{\"version\":[1,2,3]}}", ".\(digits).subject"),
    ("{\"\(digits)\":{\"subject\":\"\",\"version\":[1,2,3]}}", ".\(digits).subject"),
    ("{\"\(digits)\":{\"subject\":7,\"version\":[1,2,3]}}", ".\(digits).subject"),
    (
      "{\"\(digits)\":{\"subject\":\"\(String(repeating: "x", count: 65))\",\"version\":[1,2,3]}}", ".\(digits).subject"
    ),
    ("{\"\(digits)\":{\"subject\":\"a\"}}", ".\(digits).version"),
    ("{\"\(digits)\":{\"subject\":\"a\",\"version\":\"1.2.3\"}}", ".\(digits).version"),
    ("{\"\(digits)\":{\"subject\":\"a\",\"version\":[1,2]}}", ".\(digits).version"),
    ("{\"\(digits)\":{\"subject\":\"a\",\"version\":[1,2,9007199254740992]}}", ".\(digits).version"),
    ("{\"\(digits)\":{\"subject\":\"a\",\"version\":[1,2,3],\"more\":1}}", ".\(digits).more"),
    ("{\"\(digits)\":{\"subject\":\"a\",\"version\":[1,2,3],\"proof_key\":\"00\"}}", ".\(digits).proof_key"),
    ("{\"\(digits)\":{\"subject\":\"a\",\"version\":[1,2,3],\"proof_key\":null}}", ".\(digits).proof_key"),
  ])
  func `an image has a digest of 64 lower-case digits, a name and a version, and a slip is named`(
    images: String, path: String
  ) {
    let text = #"{"issuer":"i","attestation_issuer":"a","audience":"u","images":"# + images + "}"
    // A number above 2^53 - 1 is no JSON that is read at all.
    if images.contains("9007199254740992") {
      #expect(isMalformed(text))
    } else {
      #expect(wrongMember(text) == "images" + path)
    }
  }

  @Test func `an image that is there twice is malformed`() {
    let image = "\"\(Self.digits)\":{\"subject\":\"a\",\"version\":[1,2,3]}"
    let text = #"{"issuer":"i","attestation_issuer":"a","audience":"u","images":{"# + image + "," + image + "}}"
    #expect(isMalformed(text))
  }

  @Test func `the list of digests of an earlier version is told apart`() {
    let text = #"{"issuer":"i","attestation_issuer":"a","audience":"u","image_digests":[],"subject":"app"}"#
    #expect(throws: ServicePolicyFault.formerMember("image_digests")) { try read(text) }
  }

  @Test func `an image is approved once, under its last name, until that is taken back`() {
    var policy = ServicePolicy()
    let (first, second) = (image("a"), image("b"))
    #expect(policy.approve(first) == nil)
    #expect(policy.approve(second) == first)
    #expect(policy.images == [second])
    #expect(policy.unapprove(second.digest) == second)
    #expect(policy.unapprove(second.digest) == nil)
    #expect(policy.images.isEmpty)
  }

  private func image(_ subject: String) -> ApprovedImage {
    ApprovedImage(digest: Digest(), subject: BoundedText(subject)!, version: .zero)
  }
}
