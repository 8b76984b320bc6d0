import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastService
import TestSupport
import Testing

@Suite struct ReleaseManifestTests {
  private static let image = String(repeating: "77", count: 32)
  private static let text = #"{"maker":"Courier team","app":"app","images":{"\#(image)":[2,0,1]}}"#

  @Test(arguments: TestedDatabase.installed)
  func `an image that its maker signed has the maker's name, until it is approved without`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let maker = try Maker()
    let signed = try maker.members(Self.text)
    let root = TestApp.root.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    func approve(_ more: [(String, JSONValue)], version: [UInt64] = [2, 0, 1], subject: String = "app") throws
      -> JSONValue
    {
      try test.perform(
        "approveImage",
        body: .object(
          [
            ("digest", .string(Self.image)), ("subject", .string(subject)),
            ("version", .array(version.map { .integer($0) })), ("root", .string(root)),
          ] + more))
    }
    let record = try approve(signed)
    #expect(record["maker"]?.text == "Courier team" && record["maker_key"]?.text == hexadecimal(maker.id))
    #expect(try test.list("listChanges").first?["detail"]?.text == "app 2.0.1, signed by Courier team")
    let others: [([UInt64], String)] = [([2, 0, 2], "app"), ([2, 0, 1], "other")]
    for (version, subject) in others {
      #expect(throws: AdministrationFault.conflict(.anotherManifest)) {
        try approve(signed, version: version, subject: subject)
      }
    }
    for index in 0..<3 {
      var some = signed
      some.remove(at: index)
      #expect(throws: AdministrationFault.self) { try approve(some) }
    }
    #expect(try test.perform("showImage", key: Self.image)["maker"]?.text == "Courier team")
    #expect(try approve([])["maker"] == .null)
    // With a manifest, the tree digest is the one that the maker signed.
    let tree = ("tree_digest", JSONValue.string(String(repeating: "88", count: 32)))
    #expect(try approve([tree])["tree_digest"] == tree.1)
    #expect(try approve(signed + [tree])["tree_digest"] == .null)
    let named = #"{"version":[2,0,1],"tree_digest":"\#(String(repeating: "88", count: 32))"}"#
    let treed = try maker.members(Self.text.replacing("[2,0,1]", with: named))
    #expect(try approve(treed)["tree_digest"] == tree.1 && approve(treed + [tree])["tree_digest"] == tree.1)
    #expect(throws: AdministrationFault.conflict(.anotherManifest)) {
      try approve(treed + [("tree_digest", .string(Self.image))])
    }
    #expect(throws: AdministrationFault.self) { try approve([("tree_digest", .string("88"))]) }
  }

  @Test func `a changed text, another key and every other form of a signature are refused`() throws {
    let (maker, other) = (try Maker(), try Maker())
    let signature = try maker.signature(Self.text)
    let text = Array(Self.text.utf8)
    #expect(try ReleaseManifest(text, signature: signature, maker: maker.pem).versions.count == 1)
    #expect(throws: ReleaseManifest.Fault.signature) {
      try ReleaseManifest(text + [0x20], signature: signature, maker: maker.pem)
    }
    #expect(throws: ReleaseManifest.Fault.signature) {
      try ReleaseManifest(text, signature: signature, maker: other.pem)
    }
    #expect(throws: ReleaseManifest.Fault.key) {
      try ReleaseManifest(text, signature: signature, maker: Array(maker.pem.dropLast(20)))
    }
    for count in 0..<signature.count {
      #expect(throws: ReleaseManifest.Fault.signature) {
        try ReleaseManifest(text, signature: Array(signature.prefix(count)), maker: maker.pem)
      }
    }
    let others: [[UInt8]] = [
      signature + [0], [0x30, 0x81] + signature.dropFirst(), [0x31] + signature.dropFirst(), [0x30, 0],
    ]
    for wrong in others {
      #expect(throws: ReleaseManifest.Fault.signature) { try ReleaseManifest(text, signature: wrong, maker: maker.pem) }
    }
    // The numbers have leading zeros, which DER does not permit.
    let padded: [UInt8] = [0x30, signature[1] + 1, 0x02, signature[3] + 1, 0x00] + signature.dropFirst(4)
    #expect(throws: ReleaseManifest.Fault.signature) { try ReleaseManifest(text, signature: padded, maker: maker.pem) }
  }

  @Test(arguments: [
    "{}", "[]", "x", #"{"maker":"","app":"a","images":{}}"#, #"{"maker":"m","app":"a","images":{"00":[1,2,3]}}"#,
    #"{"maker":"m","app":"a","images":{"\#(image)":[1,2]}}"#, #"{"maker":"m","app":"a","images":{},"more":1}"#,
    #"{"maker":"m\n","app":"a","images":{}}"#,
  ])
  func `a signed text that is no manifest is refused`(text: String) throws {
    let maker = try Maker()
    let signature = try maker.signature(text)
    let fault = #expect(throws: ReleaseManifest.Fault.self) {
      try ReleaseManifest(Array(text.utf8), signature: signature, maker: maker.pem)
    }
    if case .mistake? = fault { return }
    Issue.record("\(String(describing: fault))")
  }

  @Test func `a digest of another form is said with its place`() throws {
    let maker = try Maker()
    let text = #"{"maker":"m","app":"a","images":{"00":[1,2,3]}}"#
    let mistake = JSONMistake(at: [.member("images"), .member("00")], expected: .hexadecimal(digitCount: 64))
    let signature = try maker.signature(text)
    #expect(throws: ReleaseManifest.Fault.mistake(mistake)) {
      try ReleaseManifest(Array(text.utf8), signature: signature, maker: maker.pem)
    }
  }

  @Test(arguments: ["", "m\\n", String(repeating: "m", count: 65)])
  func `a maker's name of another form is said with its place`(name: String) throws {
    let maker = try Maker()
    let text = #"{"maker":"\#(name)","app":"a","images":{}}"#
    let mistake = JSONMistake(at: [.member("maker")], expected: .byteCount(1...64))
    let signature = try maker.signature(text)
    #expect(throws: ReleaseManifest.Fault.mistake(mistake)) {
      try ReleaseManifest(Array(text.utf8), signature: signature, maker: maker.pem)
    }
  }
}
