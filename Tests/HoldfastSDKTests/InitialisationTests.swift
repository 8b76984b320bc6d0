import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastSDK
import PowerCut
import TestSupport
import Testing

/// The start of a client: its initial configuration, its folder, and its carrier.
@Suite struct InitialisationTests {
  private let place: TemporaryFolder
  private let account: TestAccount

  init() throws {
    place = try TemporaryFolder(in: memoryFolder)
    account = try TestAccount()
  }

  /// A carrier that reads a task and then does this.
  private func carrier(_ script: String) throws -> String {
    let path = try place.makeFile(
      "carrier-\(UUID().uuidString)", Array("#!/bin/sh\nread task\n\(script)\n".utf8), mode: 0o700)
    return path
  }

  private func start(_ text: String, _ name: String = "app", carrier: String = "/none") throws -> HoldfastClient {
    try HoldfastClient(
      configuration: text, state: place.file(name), keys: .default, options: ClientOptions(carrier: carrier))
  }

  @Test func `a text that is no initial configuration is refused, and nothing is made`() throws {
    let key = base64URL(account.point.bytes)
    var notOnCurve = [UInt8](account.point.bytes)
    notOnCurve[64] ^= 1
    let good = "holdfast-configuration:1?key=\(key)&service=https%3A%2F%2Fa.example"
    let bad: [(String, ConfigurationFault)] = [
      ("", .malformed), ("holdfast-configuration:2?key=\(key)&service=https%3A%2F%2Fa", .malformed),
      ("holdfast-configuration:1?key=\(key)", .malformed), (good + "&key=\(key)", .malformed),
      (good + "&x=1", .malformed),
      (good + "%", .malformed), (good + "&", .malformed), (good + "&pin=sha256%2F%2FAAAA", .pin),
      (good + "&pin=", .pin),
      (good.replacingOccurrences(of: "https", with: "http"), .service), (good + "%2Fpath", .service),
      ("holdfast-configuration:1?key=AAAA&service=https%3A%2F%2Fa", .key),
      ("holdfast-configuration:1?key=\(base64URL(notOnCurve.span))&service=https%3A%2F%2Fa", .key),
    ]
    for (text, fault) in bad {
      let error = #expect(throws: ClientError.self) { try start(text) }
      guard case .configuration(fault) = error else { return #expect(Bool(false), "\(text): \(error as Any)") }
    }
    #expect(try place.names() == [])
  }

  @Test func `services and pins of the text are those that are asked`() throws {
    let one =
      account.text + "%2Chttps%3A%2F%2Fb.example%3A8443&pin=sha256%2F%2F"
      + pin(1).replacingOccurrences(of: "=", with: "%3D")
    let environment = ClientEnvironment(
      caller: account, measurer: account, now: { Moment(unixSeconds: 0, bootSeconds: 0) }, bootID: "",
      hasNetwork: { true })
    _ = try HoldfastClient(
      configuration: one, state: place.file("app"), keys: .default, options: ClientOptions(), environment: environment)
    let services = account.world.withLock { $0.calls[0].services }
    #expect(services.map(\.address.description) == ["https://a.example", "https://b.example:8443"])
    #expect(services.map { $0.pins.map(\.description) } == [["sha256//" + pin(1)], ["sha256//" + pin(1)]])
  }

  @Test func `a program is initialised once, and again only if that is asked for`() throws {
    #expect(HoldfastClient.shared == nil)
    let options = ClientOptions(carrier: "/none")
    func initialize(_ account: TestAccount, reinit: Bool = false) throws -> HoldfastClient {
      try HoldfastClient.initialize(
        configuration: account.text, state: place.file("app"), keys: .default, options: options, reinit: reinit)
    }
    let first = try initialize(account)
    let error = #expect(throws: ClientError.self) { try initialize(account) }
    guard case .alreadyInitialized = error else { return #expect(Bool(false)) }
    #expect(HoldfastClient.shared === first)
    #expect(throws: ClientError.self) {
      try HoldfastClient.initialize(
        configuration: "x", state: place.file("app"), keys: .default, options: options, reinit: true)
    }
    #expect(HoldfastClient.shared === first)
    let second = try initialize(try TestAccount(), reinit: true)
    #expect(HoldfastClient.shared === second && second !== first)
    // The first one still has its own account.
    #expect(first.fetchConfig() == account.text)
    #expect(try Files.names(inFolder: place.file("app/accounts"), limit: 9).count == 2)
  }

  @Test func `a folder of another kind, or one that others can enter, is refused`() throws {
    try Files.createPrivateDirectory(at: place.file("phone"))
    try Files.createPrivateDirectory(at: place.file("phone/devices"))
    #expect(throws: ClientError.self) { try start(account.text, "phone") }
    try Files.createPrivateDirectory(at: place.file("open"))
    try place.setMode("open", 0o755)
    #expect(throws: ClientError.self) { try start(account.text, "open") }
    #expect(throws: ClientError.self) { try start(account.text, "none/app") }
  }

  @Test func `without its carrier, a client starts, and names what is missing`() throws {
    let client = try start(account.text)
    let result = client.fetchToken(for: "api.example.com")
    #expect((result.status, result.status.recommendation) == (.missingLibraryDependency, .error))
  }

  @Test func `a carrier that does not end is ended when the time is over`() throws {
    let caller = CarrierCaller(path: try carrier("exec sleep 600"), authorities: nil)
    let call = try #require(ServiceCall(.configuration, attemptCount: 3))
    let service = PinnedService(try ServiceAddress("https://a.example"), pins: [])
    let time = ContinuousClock().measure {
      let failure = #expect(throws: CallFailure.self) { try caller.make(call, at: [service], timeoutSeconds: 1) }
      guard case .carrier(.slow) = failure else { return #expect(Bool(false)) }
    }
    // Without the bound, it would take ten minutes.
    #expect(time < .seconds(300), "\(time)")
  }

  @Test(arguments: [
    ("echo '{}'", FetchStatus.internalError), ("exit 0", .internalError), ("echo garbage", .internalError),
    (
      #"echo '{"result":"waiting","service":"https://a.example","request":"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"}'"#,
      .internalError
    ),
    (#"echo '{"result":"answer","service":"https://a.example","answer":{}}'"#, .noService),
    (#"echo '{"result":"answer","service":"https://a.example","answer":"a.b.c"}'"#, .noService),
  ])
  func `a carrier that answers otherwise gives nothing`(script: String, status: FetchStatus) throws {
    let client = try start(account.text, carrier: try carrier(script))
    #expect(client.fetchToken(for: "api.example.com").status == status)
    #expect(client.fetchConfig() == account.text)
  }

  @Test func `a status has one of four recommendations and a text`() {
    for status in FetchStatus.allCases { #expect(status.text.hasSuffix(".")) }
    let byRecommendation = Dictionary(grouping: FetchStatus.allCases, by: \.recommendation)
    #expect(byRecommendation[.proceed] == [.success, .unknownURL, .unprotectedURL])
    #expect(byRecommendation[.retry] == [.noNetwork, .poorNetwork, .mitmDetected, .noService])
    #expect(byRecommendation[.message] == [.rejected])
    #expect(byRecommendation[.error]?.count == FetchStatus.allCases.count - 8)
  }
}

/// Power cuts at each write of a client.
@Suite struct ClientPowerCutTests {
  @Test func `a power cut leaves the old configuration or the new one, and each secret whole or none`() throws {
    let manager = FileManager.default
    let place = memoryFolder + "/holdfast-" + UUID().uuidString
    try manager.createDirectory(atPath: place, withIntermediateDirectories: false)
    defer { try? manager.removeItem(atPath: place) }
    let account = try TestAccount()
    account[\.strings] = [("api-key", "s3cret")]
    let recorder = try DiskRecorder(folder: place)
    var stages: [Int] = []
    try recorder.recording {
      let client = try account.client(at: place + "/app")
      stages.append(recorder.changes.count)
      _ = client.fetchSecureString("mine", newDefinition: "local")
      stages.append(recorder.changes.count)
      account[\.revision] = 2
      account.pass(seconds: 3600)
      _ = client.fetchSecureString("mine")
      _ = client.fetchConfig()
      stages.append(recorder.changes.count)
      _ = try client.installationPublicKey()
      stages.append(recorder.changes.count)
    }
    let made = try Dictionary(
      uniqueKeysWithValues: contents(of: place, manager).map {
        ($0.split(separator: "/").last.map(String.init) ?? "", $1)
      })
    #expect(made.count == 6)
    account.fail(.noConnection)
    var wrong: [String] = []
    var cutCount = 0
    try PowerCuts(recorder.changes).forEach(
      of: [.all, .none, .namesOnly, .lastOfEach], stage: { count in stages.count { $0 <= count } }
    ) { cut in
      cutCount += 1
      let copy = try TemporaryFolder(in: memoryFolder)
      try cut.image.write(to: copy.path)
      let client = try account.client(at: copy.file("app"))
      let passed = stages.count { $0 <= cut.changeCount }
      let revision: UInt64 = passed >= 3 ? 2 : passed >= 1 ? 1 : 0
      let text = client.fetchConfig()
      let found: UInt64 = text == account.text ? 0 : text.contains(made["configuration.jwt"] ?? "?") ? 2 : 1
      if found < revision { wrong.append("\(cut): revision \(found)") }
      let string = client.fetchSecureString("mine").secureString
      if passed >= 2, string != "local" { wrong.append("\(cut): \(string ?? "no string")") }
      if passed >= 4, try client.installationPublicKey().isEmpty { wrong.append("\(cut): no key") }
      if passed >= 2, client.deviceID == nil { wrong.append("\(cut): no id") }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(5))")
    #expect(cutCount > 20)
  }

  private func contents(of place: String, _ manager: FileManager) throws -> [(String, String)] {
    try manager.subpathsOfDirectory(atPath: place).compactMap { name in
      let kind = try manager.attributesOfItem(atPath: place + "/" + name)[.type] as? FileAttributeType
      guard kind == .typeRegular else { return nil }
      return (name, String(decoding: manager.contents(atPath: place + "/" + name) ?? Data(), as: UTF8.self))
    }
  }
}
