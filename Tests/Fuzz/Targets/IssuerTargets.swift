import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastProver
import TestSupport

/// The readers of an issuer, and of what a prover gets from one.
let issuerTargets = [
  FuzzTarget(
    "service-policy",
    [
      "HoldfastIssuer/Service/ServicePolicy.swift", "HoldfastIssuer/Service/ApprovedImage.swift",
      "HoldfastIssuer/Service/ScopedSettings.swift", "HoldfastFormats/Terms/Conditions.swift",
    ], maximumByteCount: 8192
  ) { bytes in
    let policy = try ServicePolicy(json: bytes)
    let text = policy.json.compact()
    let again = try mustSucceed("a policy that was written is refused") { try ServicePolicy(json: text) }
    try require(again.json.compact() == text, "a policy that is written and read again differs")
    note(text)
    for settings in policy.scopedSettings {
      let applying = policy.conditions(
        of: settings.app ?? "app", settings.version ?? .zero, for: settings.device ?? DeviceID())
      try require(applying.settings != nil, "settings do not apply to what they are for")
    }
  },
  FuzzTarget(
    "token-answer", ["HoldfastProver/MeasurementToken+Issuance.swift", "HoldfastFormats/IssuanceReport.swift"]
  ) { bytes in
    let token = try MeasurementToken(answer: bytes)
    note(token.bytes)
    guard let value = try? JSONValue(parsing: bytes, byteLimit: bytes.count), let claims = value["claims"],
      let report = IssuanceReport(claims)
    else { return }
    try require(IssuanceReport(report.json) == report, "a report that is written and read again differs")
    let lines = report.lines
    note(report.json.compact())
    note("\(lines)")
  },
  FuzzTarget("posture-rules", ["HoldfastProver/Posture/PostureRules.swift"], maximumByteCount: 2048) { bytes in
    attempt { _ = try PostureRules(bytes, by: Signer.point) }
    if let value = try? JSONValue(parsing: bytes, byteLimit: bytes.count) {
      let claims = attempt { try PostureRules.claims(of: JSONMember(value), issued: testTime) }
      note(claims?.compact() ?? [])
    }
    let rules = try PostureRules(try Signer.sign(bytes, type: PostureRules.type), by: Signer.point)
    for state in [PostureState.clear, .found, .unknown] {
      let posture = Posture(PostureFinding.allCases.map { Posture.Observation($0, state) })
      note("\(rules.judge(posture).action)")
      try require(rules.judge(posture).action >= .ignore, "a posture has no consequence")
    }
  },
  FuzzTarget(
    "prover-state",
    [
      "HoldfastProver/Terms/LatestTime.swift", "HoldfastProver/State/WaitingRequest.swift",
      "HoldfastProver/State/EnrolmentFolder.swift", "HoldfastProver/Terms/HostReading.swift",
      "HoldfastMeasurement/App/SystemRelease.swift",
    ], variantCount: 16
  ) { bytes in
    if let time = LatestTime(bytes) {
      note("\(time)")
      try require(time.encoded() == bytes, "a time that is read and written again differs")
      let host = HostSource(unixSeconds: { testTime }, uptime: { time.uptime }, release: { nil })
      let present = time.present(host)
      try require(present >= max(time.seconds, testTime), "the present is before a known time")
      note("\(present)")
      for seconds in [time.uptime?.seconds ?? 0, 1000, .max] as [UInt64] {
        for bootID in [time.uptime?.bootID ?? "", "another"] {
          let floor = time.floor(Uptime(bootID: bootID, seconds: seconds))
          note("\(floor)")
        }
      }
    }
    if bytes.first == 0xff { return try loadEnrolment(Array(bytes.dropFirst())) }
    let waiting = WaitingRequest(bytes)
    note(waiting.encoded)
    let again = WaitingRequest(waiting.encoded)
    try require(
      again.wishes == waiting.wishes && again.service == waiting.service && again.id == waiting.id,
      "a request that waits differs")
    let system = OperatingSystem(release: bytes)
    note("\(system)")
    let manifest = try EnrolmentManifest(bytes, at: "enrolment.json")
    let text = manifest.encoded()
    note(text)
    let other = try mustSucceed("an enrolment that was written is refused") {
      try EnrolmentManifest(text, at: "enrolment.json")
    }
    try require(other.encoded() == text, "an enrolment that is written and read again differs")
  },
]

/// Reads as ``attempt(_:)`` does, without the error: it names a folder, which is another one each time.
@discardableResult
private func attemptInFolder<Result>(_ read: () throws -> Result) -> Result? {
  attempt { do { return try read() } catch { throw CancellationError() } }
}

/// Reads the files of an enrolment, which are the fuzzer's messages, with a manifest that names their digests.
private func loadEnrolment(_ bytes: [UInt8]) throws {
  var input = FuzzInput(bytes)
  let folder = try TemporaryFolder()
  let enrolment = ProverFolder(path: folder.path).folder(of: DeviceID())
  mkdir(folder.file("devices"), 0o700)
  mkdir(enrolment.path, 0o700)
  var files: [String: [UInt8]] = [:]
  for name in [
    EnrolmentFolder.configurationName, EnrolmentFolder.tokenName(.cose), EnrolmentFolder.fingerprintsName,
    EnrolmentFolder.termsName, LatestTime.fileName, EnrolmentFolder.rememberedName, EnrolmentFolder.enrolmentName,
  ] where !input.isEmpty { files[name] = input.message() }
  if var manifest = files[EnrolmentFolder.enrolmentName].flatMap({ try? JSONValue(parsing: $0, byteLimit: $0.count) }) {
    for (member, name) in [
      ("token_sha256", EnrolmentFolder.tokenName(.cose)), ("terms_sha256", EnrolmentFolder.termsName),
      ("configuration_sha256", EnrolmentFolder.configurationName),
      ("fingerprints_sha256", EnrolmentFolder.fingerprintsName),
    ] where manifest[member]?.text == "right" {
      var hash = SHA256Stream()
      let contents = files[name] ?? []
      hash.append(contents.span)
      let digest: Digest = try hash.finish()
      manifest = .object((manifest.members ?? []).map { ($0.0, $0.0 == member ? .string(hexadecimal(digest)) : $0.1) })
    }
    files[EnrolmentFolder.enrolmentName] = manifest.compact()
  }
  for (name, contents) in files { try folder.makeFile("devices/\(hexadecimal(DeviceID()))/\(name)", contents) }
  let isThere = attemptInFolder { try enrolment.hasEnrolment() }
  note(String(describing: isThere))
  attemptInFolder { _ = try enrolment.loadDevice() }
  let host = HostSource(unixSeconds: { testTime }, uptime: { nil }, release: { nil })
  if let time = attemptInFolder({ try enrolment.latestTime() }) {
    note("\(time.seconds)")
    let raised = try mustSucceed("the latest time cannot be raised") { try enrolment.raiseLatestTime(host) }
    try require(raised >= time.seconds, "the latest time goes back")
  }
  _ = enrolment.isRemembered(files[EnrolmentFolder.tokenName(.cose)] ?? [])
  guard let loaded = attemptInFolder({ try enrolment.load() }) else { throw CancellationError() }
  try mustSucceed("an enrolment that was loaded cannot be written") {
    try enrolment.write(loaded, time: LatestTime(seconds: testTime, uptime: nil))
  }
  let again = try mustSucceed("an enrolment that was written is refused") { try enrolment.load() }
  try require(again.token == loaded.token && again.terms?.bytes == loaded.terms?.bytes, "an enrolment differs")
}
