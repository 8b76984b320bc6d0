import Foundation
import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct ServiceFolderTests {
  let temporary: TemporaryFolder
  let parties: Parties

  init() throws {
    temporary = try TemporaryFolder()
    parties = try Parties()
  }

  private var path: String { temporary.path + "/S" }

  private func create(_ signature: ServiceFolder.AttestationSignature = .hs256) throws -> ServiceFolder {
    let keys = parties.releaseKeys
    return try ServiceFolder.create(at: path, releaseKeys: keys.span, policy: parties.policy, signature: signature)
  }

  /// Everything once, with the folder's own keys and records.
  private func enroll(_ folder: ServiceFolder, _ format: MeasurementTokenFormat = .cose) throws -> Issuance {
    var random = SystemRandom()
    let clock = TestClock(seconds: parties.now)
    let evidence = try parties.evidence()
    var service = try folder.attestationService()
    let appraisal = try service.appraise(evidence.span, for: parties.device(), clock: clock, random: &random)
    guard case .approved(let token, _) = appraisal else { throw UnreadableFile() }
    var backend = try folder.backend()
    var options = IssuanceOptions()
    options.format = format
    return try backend.issue(
      attestation: token.span, for: parties.device(), options: options, clock: clock, random: &random)
  }

  @Test(arguments: [ServiceFolder.AttestationSignature.hs256, .es256])
  func `a new folder enrolls an app, and its issuer is the one that it shows`(
    signature: ServiceFolder.AttestationSignature
  ) throws {
    let folder = try create(signature)
    guard case .issued(let issued) = try enroll(folder) else {
      Issue.record("refused")
      return
    }
    #expect(try open(issued.bytes, MemoryStore(trusting: folder.issuerKey().point)) == "example-app")
  }

  @Test func `a folder that shares a key with a device enrolls with it`() throws {
    let folder = try create()
    let key = try folder.macKey(for: parties.device()).withBytes { $0.array }
    guard case .issued(let issued) = try enroll(folder, .macCOSE) else {
      Issue.record("refused")
      return
    }
    let point = try folder.issuerKey().point
    #expect(try open(issued.bytes, MemoryStore(trusting: point, macKey: key)) == "example-app")
    #expect(throws: TokenFault.untrusted) { try open(issued.bytes, MemoryStore(trusting: point)) }
    let other = try folder.macKey(for: parties.device(id: DeviceID())).withBytes { $0.array }
    #expect(throws: TokenFault.untrusted) { try open(issued.bytes, MemoryStore(trusting: point, macKey: other)) }
  }

  @Test func `the secret of shared keys is made with the first one, and stays`() throws {
    let folder = try create()
    #expect(throws: UnreadableFile.self) { try readFile(folder.path(of: .mac)) }
    #expect(throws: IssuanceFault.writing(.noMACSecret)) { _ = try enroll(folder, .macCOSE) }
    let key = try folder.macKey(for: parties.device()).withBytes { $0.array }
    #expect(try temporary.mode("S/" + ServiceFile.mac.rawValue) == 0o600)
    #expect(try folder.macKey(for: parties.device()).withBytes { $0.array } == key)
  }

  @Test(arguments: [ServiceFile.issuer, .account])
  func `a secret of shared keys that serves elsewhere too is refused`(file: ServiceFile) throws {
    let folder = try create()
    let secret = try readFile(folder.path(of: file))
    try Files.writeFileAtomically(secret, at: folder.path(of: .mac), overwrite: false)
    #expect(throws: ServiceFolderFault.sharedKey) { _ = try folder.backend() }
    #expect(throws: ServiceFolderFault.sharedKey) { _ = try folder.macKey(for: parties.device()) }
  }

  @Test func `a secret of shared keys that is cut short, or open to others, is refused`() throws {
    let folder = try create()
    _ = try folder.macKey(for: parties.device())
    let (path, bytes) = (folder.path(of: .mac), try readFile(folder.path(of: .mac)))
    try Files.writeFileAtomically(Array(bytes.dropLast()), at: path, overwrite: true)
    #expect(throws: ServiceFolderFault.key(.mac)) { _ = try folder.backend() }
    try Files.writeFileAtomically(bytes, at: path, mode: 0o640, overwrite: true)
    #expect(throws: ServiceFolderFault.file(FileError(.tooOpen(mode: 0o640), at: path))) { _ = try folder.backend() }
  }

  private func open(_ token: [UInt8], _ issuer: MemoryStore) throws -> String {
    var cryptography = OpenSSLCryptography()
    var trust = issuer
    var key = try parties.example.key("keys.device_private")
    var opener = TokenOpener()
    var verified = AuthenticatedToken()
    try opener.open(
      token.span, encoding: .cose, key: &key, keyID: parties.example.fixed("keys.device_kid"), trust: &trust,
      acceptsUnsigned: false, acceptsMAC: true, using: &cryptography, into: &verified)
    return verified.claims.subject.description
  }

  @Test(arguments: [ServiceFolder.AttestationSignature.hs256, .es256])
  func `the folder and all of its files are this user's alone`(
    signature: ServiceFolder.AttestationSignature
  ) throws {
    let folder = try create(signature)
    _ = try enroll(folder)
    #expect(try temporary.mode("S") == 0o700)
    _ = try folder.macKey(for: parties.device())
    for file in ServiceFile.allCases where file != .attestation || signature == .es256 {
      #expect(try temporary.mode("S/" + file.rawValue) == 0o600, "\(file)")
    }
  }

  @Test func `a second folder in the same place is refused, and the first keeps its keys`() throws {
    let folder = try create()
    let issuer = try folder.issuerKey()
    #expect(throws: ServiceFolderFault.file(FileError(.exists, at: folder.path(of: .account)))) { _ = try create() }
    #expect(try folder.issuerKey() == issuer)
  }

  @Test func `a service whose making was interrupted is refused, and the next making begins anew`() throws {
    let folder = try create()
    let issuer = try folder.issuerKey()
    try IncompleteFolder.mark(path, as: .service)
    for file in [ServiceFile.account, .policy] { try Files.removeFile(at: folder.path(of: file)) }
    #expect(throws: ServiceFolderFault.halfMade) { _ = try folder.attestationService() }
    #expect(throws: ServiceFolderFault.halfMade) { _ = try folder.backend() }
    #expect(throws: ServiceFolderFault.halfMade) { _ = try folder.issuerKey() }
    #expect(throws: ServiceFolderFault.halfMade) { _ = try folder.policy() }
    #expect(throws: ServiceFolderFault.halfMade) { _ = try folder.sign(document: .object([]), type: "a") }
    #expect(throws: ServiceFolderFault.halfMade) {
      try folder.changing { () throws(ServiceFolderFault) in Issue.record("a half-made service was changed") }
    }
    let again = try create()
    #expect(try again.issuerKey() != issuer)
    guard case .issued = try enroll(again) else {
      Issue.record("refused")
      return
    }
  }

  @Test func `the files that SQLite adds to a half-made service are removed with the others`() throws {
    try Files.createPrivateDirectory(at: path)
    try IncompleteFolder.mark(path, as: .service)
    let left = ["", "-wal", "-shm", "-journal"].flatMap { ["attestation.sqlite" + $0, "issuer.sqlite" + $0] }
    for name in left.dropLast() { try temporary.makeFile("S/" + name, [1]) }
    // The last one cannot be removed, so that nothing else is made in their place.
    try Files.createPrivateDirectory(at: path + "/issuer.sqlite-journal")
    #expect(throws: ServiceFolderFault.self) { _ = try create() }
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    #expect(Set(names) == ["half-made", "issuer.sqlite-journal", "lock"])
  }

  @Test func `a service that lost its policy was not interrupted, and its keys are not replaced`() throws {
    let folder = try create()
    try Files.removeFile(at: folder.path(of: .policy))
    #expect(throws: ServiceFolderFault.self) { _ = try create() }
    #expect(try readFile(folder.path(of: .issuer)).count == 32)
  }

  @Test(arguments: [FolderKind.device, .prover, .authenticator])
  func `a folder of another kind is refused, by its kind, and nothing is written into it`(kind: FolderKind) throws {
    let name = ["device.json", "enrolment.json", "authenticator.sqlite"][
      [FolderKind.device, .prover, .authenticator].firstIndex(of: kind)!]
    try Files.createPrivateDirectory(at: path)
    try Files.writeFileAtomically([], at: path + "/" + name, overwrite: false)
    let fault = ServiceFolderFault.file(FileError(.anotherKind(kind), at: path))
    #expect(throws: fault) { _ = try create() }
    #expect(throws: fault) { _ = try ServiceFolder(path: path).policy() }
    #expect(throws: UnreadableFile.self) { try readFile(path + "/" + ServiceFile.issuer.rawValue) }
  }

  @Test func `the owner's registration outlives the process, replaces a key that came first, and revokes its tokens`()
    throws
  {
    let folder = try create()
    let device = try parties.device()
    let other = try DeviceDescriptor(deviceID: device.deviceID, publicPoint: P256PrivateKey().publicPoint)
    guard case .issued = try enroll(folder) else {
      Issue.record("refused")
      return
    }
    var first = try folder.issuedBaselines()
    #expect(try first.register(other, label: parties.text("door"), now: 5) == .added(generation: 2))
    #expect(try first.register(other, label: nil, now: 6) == .unchanged)
    #expect(try first.register(other, label: parties.text("gate"), now: 6) == .relabelled)
    #expect(try first.register(device, label: nil, now: 6) == .anotherKey)
    #expect(try first.block(device.deviceID, now: 7))
    #expect(try !first.block(device.deviceID, now: 8))
    var second = try folder.issuedBaselines()
    let entry = RegisteredDevice(
      deviceID: device.deviceID, publicPoint: other.publicKey.point, label: parties.text("gate"), added: 5, blocked: 7)
    #expect(try second.registration(of: device.deviceID) == entry)
    #expect(try second.registeredDevices() == [entry])
    #expect(try second.unregister(device.deviceID))
    #expect(try !second.unregister(device.deviceID))
    #expect(try second.registration(of: device.deviceID)?.publicPoint == nil)
    #expect(try second.unblock(device.deviceID))
    #expect(try !second.unblock(device.deviceID))
    #expect(try second.registration(of: device.deviceID) == nil)
    #expect(try second.knows(device.deviceID))
    #expect(try !second.knows(DeviceID()))
    #expect(try second.register(other, label: nil, now: 9) == .added(generation: nil))
  }

  @Test func `a key file has at most 16,384 bytes`() throws {
    let folder = try create()
    for (count, isRead) in [(16_384, true), (16_385, false)] {
      let secret = [UInt8](repeating: 7, count: count)
      try Files.writeFileAtomically(secret, at: folder.path(of: .account), overwrite: true)
      let fault = ServiceFolderFault.file(FileError(.tooLarge, at: folder.path(of: .account)))
      do throws(ServiceFolderFault) {
        _ = try folder.attestationService()
        #expect(isRead)
      } catch { #expect(!isRead && error == fault) }
    }
  }

  @Test func `the records say whose they are, so that no other database is taken for one`() throws {
    let folder = try create()
    for (file, name) in [(ServiceFile.attestationLedger, "HFas"), (.issuerLedger, "HFbe")] {
      #expect(try readFile(folder.path(of: file))[68..<72].elementsEqual(name.utf8))
    }
  }

  @Test func `two folders have different keys`() throws {
    let first = try create().issuerKey()
    let keys = parties.releaseKeys
    let second = try ServiceFolder.create(at: path + "2", releaseKeys: keys.span, policy: parties.policy).issuerKey()
    #expect(first != second)
  }

  @Test func `a key that others may read is refused`() throws {
    let folder = try create()
    let issuer = folder.path(of: .issuer)
    #expect(unsafe chmod(issuer, 0o640) == 0)
    #expect(throws: ServiceFolderFault.file(FileError(.tooOpen(mode: 0o640), at: issuer))) {
      _ = try folder.backend()
    }
  }

  @Test func `a policy that others may write is refused`() throws {
    let folder = try create()
    let policy = folder.path(of: .policy)
    #expect(unsafe chmod(policy, 0o620) == 0)
    #expect(throws: ServiceFolderFault.file(FileError(.tooOpen(mode: 0o620), at: policy))) { _ = try folder.policy() }
  }

  @Test func `an issuer's key that serves as attestation key is refused`() throws {
    let folder = try create(.es256)
    let scalar = try readFile(folder.path(of: .issuer))
    try Files.writeFileAtomically(scalar, at: folder.path(of: .attestation), overwrite: true)
    #expect(throws: ServiceFolderFault.sharedKey) { _ = try folder.backend() }
    #expect(throws: ServiceFolderFault.sharedKey) { _ = try folder.attestationService() }
  }

  @Test func `an issuer's key that serves as account secret, or to decrypt, is refused`() throws {
    let folder = try create()
    let scalar = try readFile(folder.path(of: .issuer))
    let account = try readFile(folder.path(of: .account))
    try Files.writeFileAtomically(scalar, at: folder.path(of: .account), overwrite: true)
    #expect(throws: ServiceFolderFault.sharedKey) { _ = try folder.backend() }
    try Files.writeFileAtomically(account, at: folder.path(of: .account), overwrite: true)
    guard case .object(let members) = try folder.issuerKey().json else { return }
    let jwk = JSONValue.object(
      members + [
        ("d", .string(base64URL(scalar.span))), ("alg", .string("ECDH-ES")), ("enc", .string("A256GCM")),
      ])
    try Files.writeFileAtomically(jwk.compact(), at: folder.path(of: .attestationEncryption), overwrite: true)
    #expect(throws: ServiceFolderFault.sharedKey) { _ = try folder.backend() }
  }

  @Test(arguments: [ServiceFile.account, .issuer, .releaseKeys, .attestationEncryption])
  func `a key file that is cut short is refused`(file: ServiceFile) throws {
    let folder = try create()
    let bytes = try readFile(folder.path(of: file))
    try Files.writeFileAtomically(Array(bytes.dropLast(2)), at: folder.path(of: file), overwrite: true)
    #expect(throws: ServiceFolderFault.key(file)) { _ = try folder.attestationService() }
  }

  @Test func `records outlive the process: a baseline is approved once and stays one device's, whose key stays too`()
    throws
  {
    let folder = try create()
    guard case .issued = try enroll(folder) else {
      Issue.record("refused")
      return
    }
    #expect(throws: UnreadableFile.self) { try enroll(folder) }
    var first = try IssuedBaselinesDatabase(path: folder.path(of: .issuerLedger), creating: false)
    #expect(try first.claim(Digest(), for: parties.example.deviceID))
    var other = Digest()
    other[0] = 1
    #expect(try first.bind(DeviceID(), to: other))
    #expect(try first.raiseGeneration(of: DeviceID()) == 2)
    var second = try IssuedBaselinesDatabase(path: folder.path(of: .issuerLedger), creating: false)
    #expect(try second.claim(Digest(), for: parties.example.deviceID))
    #expect(try !second.claim(Digest(), for: DeviceID()))
    #expect(try second.bind(DeviceID(), to: other))
    #expect(try !second.bind(DeviceID(), to: Digest()))
    #expect(try !second.bind(parties.example.deviceID, to: Digest()))
    #expect(try second.generation(of: DeviceID()) == 2)
    #expect(try second.generation(of: parties.example.deviceID) == 1)
  }

  @Test(arguments: [ServiceFile.attestationLedger, .issuerLedger])
  func `a record that was lost does not begin anew`(file: ServiceFile) throws {
    let folder = try create()
    try Files.removeFile(at: folder.path(of: file))
    #expect(throws: ServiceFolderFault.ledger(ServiceLedgerFault(file, cause: .cannotOpen))) { try enroll(folder) }
  }

  @Test func `a release's keys can be registered, once, and no other evidence key takes their place`() throws {
    let folder = try create()
    let before = try folder.proofKeyIDs()
    try folder.register(MeasurementProofKey(), EvidenceKey())
    try folder.register(MeasurementProofKey(), EvidenceKey())
    let other = [UInt8](repeating: 1, count: 32)
    #expect(throws: ServiceFolderFault.key(.releaseKeys)) {
      try folder.register(MeasurementProofKey(), EvidenceKey(copying: other.span)!)
    }
    #expect(try folder.proofKeyIDs().count == 2)
    #expect(try folder.proofKeyIDs().first == before.first)
  }

  @Test(arguments: [
    "RSA-OAEP-256 A128CBC-HS256", "A256KW A256GCM", "dir A256CBC-HS512", "ECDH-ES+A256KW A256GCM",
    "A256GCMKW A192GCM",
  ])
  func `the backend's key may be of another kind, and then fixes the other algorithm`(name: String) throws {
    let folder = try create()
    let token = try #require(
      PeerToken.encrypted().first { "\($0.algorithm) \($0.encryption)" == name || name.hasPrefix($0.algorithm + " ") })
    let key = try #require(token.value["key"]).compact()
    try Files.writeFileAtomically(key, at: folder.path(of: .attestationEncryption), overwrite: true)
    guard case .issued = try enroll(folder) else {
      Issue.record("refused")
      return
    }
  }
}
