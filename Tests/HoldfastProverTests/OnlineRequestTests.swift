import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import TestSupport
import Testing

import HoldfastProver

/// The state of enrolments whose tokens come later, and the pins of services.
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

  @Test func `pins are kept for each service, and replaced together`() throws {
    let folder = prover.folder
    try Files.createPrivateDirectory(at: folder.path)
    #expect(try folder.servicePins() == .object([]))
    try folder.keep(pins: .array([.string("a"), .string("b")]), of: ["https://x", "https://y"])
    try folder.keep(pins: .array([.string("c")]), of: ["https://x"])
    let pins = try folder.servicePins()
    #expect(pins["https://x"] == .array([.string("c")]))
    #expect(pins["https://y"] == .array([.string("a"), .string("b")]))
  }

  @Test(arguments: [
    "", "{}", #"{"version":2,"pins":{}}"#, #"{"version":1,"pins":[]}"#, #"{"version":1,"pins":{"a":[]}}"#,
  ])
  func `damaged pins are no pins`(text: String) throws {
    let folder = prover.folder
    try Files.createPrivateDirectory(at: folder.path)
    try Files.writeFileAtomically(Array(text.utf8), at: folder.path + "/services.json", overwrite: true)
    let fault = #expect(throws: StateFolderFault.self) { try folder.servicePins() }
    guard case .damaged = fault else { return #expect(Bool(false), "\(String(describing: fault))") }
    #expect(throws: StateFolderFault.self) { try folder.keep(pins: .array([.string("c")]), of: ["https://x"]) }
  }
}
