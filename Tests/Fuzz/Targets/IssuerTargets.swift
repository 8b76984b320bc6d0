import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastProver

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
  },
  FuzzTarget(
    "token-answer", ["HoldfastProver/MeasurementToken+Issuance.swift", "HoldfastFormats/IssuanceReport.swift"]
  ) { bytes in
    _ = try MeasurementToken(answer: bytes)
    guard let value = try? JSONValue(parsing: bytes, byteLimit: bytes.count), let claims = value["claims"],
      let report = IssuanceReport(claims)
    else { return }
    try require(IssuanceReport(report.json) == report, "a report that is written and read again differs")
    _ = report.lines
  },
  FuzzTarget("posture-rules", ["HoldfastProver/Posture/PostureRules.swift"], maximumByteCount: 2048) { bytes in
    _ = try? PostureRules(bytes, by: Signer.point)
    _ = try PostureRules(try Signer.sign(bytes, type: PostureRules.type), by: Signer.point)
  },
  FuzzTarget(
    "prover-state",
    [
      "HoldfastProver/Terms/LatestTime.swift", "HoldfastProver/State/WaitingRequest.swift",
      "HoldfastProver/State/EnrolmentFolder.swift", "HoldfastProver/Terms/HostReading.swift",
      "HoldfastMeasurement/App/SystemRelease.swift",
    ]
  ) { bytes in
    if let time = LatestTime(bytes) {
      try require(time.encoded() == bytes, "a time that is read and written again differs")
      _ = time.floor(Uptime(bootID: time.uptime?.bootID ?? "", seconds: .max))
    }
    let waiting = WaitingRequest(bytes)
    let again = WaitingRequest(waiting.encoded)
    try require(
      again.wishes == waiting.wishes && again.service == waiting.service && again.id == waiting.id,
      "a request that waits differs")
    _ = OperatingSystem(release: bytes)
    let manifest = try EnrolmentManifest(bytes, at: "enrolment.json")
    let text = manifest.encoded()
    let other = try mustSucceed("an enrolment that was written is refused") {
      try EnrolmentManifest(text, at: "enrolment.json")
    }
    try require(other.encoded() == text, "an enrolment that is written and read again differs")
  },
]
