import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOnline
import TestSupport
import Testing

import HoldfastProver

/// The state of enrolments whose tokens come later, and the services that a prover knows.
@Suite struct OnlineRequestTests {
  private let place: TemporaryFolder
  private let prover: Prover
  private let lock: TestLock
  private let wishes = JSONValue.object([("format", .string("cose"))])

  init() throws {
    place = try TemporaryFolder()
    prover = Prover(state: place.file("phone"), keys: .default)
    lock = try TestLock()
  }

  @Test func `a baseline that waits gives the same evidence again, also to another prover`() throws {
    let device = lock.descriptor
    let claims = AppClaims(subject: "app", version: AppVersion(major: 1, minor: 2, patch: 3))
    let begun = try prover.begin(for: device.deviceID, as: claims)
    let other = Prover(state: place.file("phone"), keys: .default)
    let resumed = try #require(try other.resume(for: device.deviceID, as: claims))
    #expect(resumed.evidence == begun.evidence)
    #expect(try other.resume(for: device.deviceID)?.evidence != begun.evidence)
    try other.accept(try lock.token(for: resumed.evidence), for: device)
    let fault = #expect(throws: ProverError.self) { try other.resume(for: device.deviceID) }
    guard case .state(.noBaseline) = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
  }

  @Test func `if something has changed since, a baseline is not given again`() throws {
    let id = lock.descriptor.deviceID
    let begun = try prover.begin(for: id)
    let path = place.file("phone/pending/\(hexadecimal(id))/\(EnrolmentFolder.fingerprintsName)")
    let others = try Prover(state: place.file("tablet"), keys: .default).begin(for: id)
    try Files.writeFileAtomically(others.fingerprints.encoded(), at: path, overwrite: true)
    #expect(try prover.resume(for: id) == nil)
    try Files.writeFileAtomically(begun.fingerprints.encoded(), at: path, overwrite: true)
    #expect(try prover.resume(for: id) != nil)
  }

  @Test func `a request is kept with its baseline, and its place as soon as it is known`() throws {
    let id = lock.descriptor.deviceID
    #expect(try prover.folder.waitingRequest(for: id)?.wishes == nil)
    let baseline = try prover.begin(
      WaitingRequest(wishes: wishes), for: id, as: AppClaims(), of: try prover.measure(), replacing: false)
    let kept = try #require(try prover.folder.waitingRequest(for: id))
    #expect(kept.wishes == wishes)
    #expect(kept.service == nil && kept.id == nil)
    let configuration = baseline.configuration.encoded()
    let known = WaitingRequest(wishes: wishes, service: "https://a.example", id: "0a")
    try prover.folder.record(known, configuration: [0], for: id)
    #expect(try prover.folder.waitingRequest(for: id)?.service == nil)
    try prover.folder.record(known, configuration: configuration, for: id)
    #expect(try prover.folder.waitingRequest(for: id)?.service == "https://a.example")
    #expect(try prover.folder.waitingRequest(for: id)?.id == "0a")
    prover.folder.removeBegun(configuration: configuration, for: id)
    #expect(try prover.folder.waitingRequest(for: id)?.wishes == nil)
  }

  @Test func `a baseline for a token by hand has no request, and a damaged request has no wishes`() throws {
    let id = lock.descriptor.deviceID
    _ = try prover.begin(for: id)
    #expect(try prover.folder.waitingRequest(for: id)?.wishes == nil)
    let path = place.file("phone/pending/\(hexadecimal(id))/\(WaitingRequest.fileName)")
    try Files.writeFileAtomically(Array("{".utf8), at: path, overwrite: true)
    #expect(try prover.folder.waitingRequest(for: id)?.wishes == .null)
  }

  private var servicesPath: String { prover.folder.path + "/services.json" }
  private func address(_ number: Int) throws -> ServiceAddress { try ServiceAddress("https://s\(number).example") }

  @Test func `two who change the services at the same time lose nothing`() async throws {
    let folder = prover.folder
    try Files.createPrivateDirectory(at: folder.path)
    #expect(try folder.knownServices().pinned.isEmpty)
    let pin = try #require(ServicePin("sha256//" + String(repeating: "A", count: 43) + "="))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<16 {
        let address = try address(number)
        group.addTask { try ProverFolder(path: folder.path).updateServices { $0.setPins([pin], of: [address]) } }
      }
      try await group.waitForAll()
    }
    #expect(try folder.knownServices().pinned.count == 16)
    #expect(try place.mode("phone/services.json") == 0o600)
  }

  @Test func `a damaged file is neither used nor changed`() throws {
    let folder = prover.folder
    try Files.createPrivateDirectory(at: folder.path)
    let text = Array(#"{"version":2,"pins":{"https://a.example":[]}}"#.utf8)
    try Files.writeFileAtomically(text, at: servicesPath, overwrite: true)
    let usual = ServiceAccess([try address(1)])
    for step in [{ _ = try folder.knownServices() }, { try folder.updateServices { $0.usual = usual } }] {
      let fault = #expect(throws: KnownServicesFault.self) { try step() }
      guard case .damaged(servicesPath, _) = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    }
    #expect(try place.contents("phone/services.json") == text)
  }

  @Test(arguments: [(0o600, true), (0o644, true), (0o620, false), (0o602, false)])
  func `a file that others may write is refused`(mode: Int, isRead: Bool) throws {
    try Files.createPrivateDirectory(at: prover.folder.path)
    try prover.folder.updateServices { known in known.usual = (try? address(1)).map { ServiceAccess([$0]) } }
    try place.setMode("phone/services.json", mode)
    let usual = try? prover.folder.knownServices().usual
    #expect((usual == nil) != isRead)
  }

  @Test func `more services than the file may have are refused, and the file stays`() throws {
    let folder = prover.folder
    try Files.createPrivateDirectory(at: folder.path)
    let pin = try #require(ServicePin("sha256//" + String(repeating: "A", count: 43) + "="))
    let many = try (0..<2000).map { try address($0) }
    try folder.updateServices { $0.usual = ServiceAccess([many[0]]) }
    #expect(throws: KnownServicesFault.self) { try folder.updateServices { $0.setPins([pin], of: many) } }
    #expect(try folder.knownServices().usual?.addresses == [many[0]])
  }

  @Test func `an enrolment knows the service that issued its token, and one with another text there is damaged`() throws
  {
    let device = lock.descriptor
    let baseline = try prover.takeBaseline()
    let token = try lock.token(for: baseline.evidence)
    let issued = MeasurementToken(token.bytes, report: token.report, service: try address(1))
    try prover.store(issued, of: baseline, for: device, replacing: false)
    #expect(try prover.status()[0].service == address(1))
    let path = prover.folder.folder(of: device.deviceID).file(EnrolmentFolder.enrolmentName)
    let text = String(decoding: try Files.readFile(at: path, limit: 65_536), as: UTF8.self)
    let other = text.split(separator: "https://s1.example").joined(separator: "s1.example/x")
    #expect(other != text)
    try Files.writeFileAtomically(Array(other.utf8), at: path, overwrite: true)
    #expect(try prover.status()[0].validity == .damaged)
  }
}
