import HoldfastCore
import HoldfastIssuer
import TestSupport

/// The readers of what a prover measures, and of what users type at a device.
let measurementTargets = [
  FuzzTarget("configuration", ["HoldfastCore/Measurement/MeasurementConfiguration.swift"]) { bytes in
    let configuration = try MeasurementConfiguration(decoding: bytes.span)
    try require(configuration.encoded() == bytes, "a configuration that is read and written again differs")
  },
  FuzzTarget("fingerprints", ["HoldfastCore/Measurement/Component.swift"]) { bytes in
    let fingerprints = try BaselineFingerprints(decoding: bytes.span)
    try require(fingerprints.encoded() == bytes, "fingerprints that are read and written again differ")
  },
  FuzzTarget("evidence", ["HoldfastCore/Measurement/Evidence.swift"], maximumByteCount: 8192) { bytes in
    let submitted = attempt { try SubmittedEvidence(bytes) }
    let unverified = try UnverifiedEvidence(decoding: bytes.span)
    try require(submitted != nil, "an issuer refuses evidence that is well-formed")
    let image = unverified.image
    note(String(describing: image))
    var cryptography = CredulousCryptography()
    // Every MAC is zero.
    let evidence = try unverified.verified(with: EvidenceKey(), using: &cryptography).evidence
    let written = try evidence.encoded(authenticatedWith: EvidenceKey(), using: &cryptography)
    try require(written == bytes, "evidence that is read and written again differs")
  },
  FuzzTarget("ocra", ["HoldfastCore/OATH/OCRASuite.swift", "HoldfastCore/OATH/OCRA.swift"], maximumByteCount: 256) {
    bytes in
    let parts = bytes.split(separator: 0x0a, maxSplits: 1, omittingEmptySubsequences: false)
    let text = Array(parts[0])
    guard let suite = OCRASuite(text.span) else { return }
    note("a suite")
    try require([UInt8](suite.text.bytes) == text, "a suite that is read and written again differs")
    let question = parts.count > 1 ? Array(parts[1]) : []
    _ = OCRAQuestion(challengeDigits: question.span, for: suite)
    guard let asked = OCRAQuestion(question.span, for: suite) else { return }
    note("a question")
    var cryptography = CredulousCryptography()
    let session = [UInt8](repeating: 1, count: suite.sessionByteCount ?? 0)
    let (key, pin) = (usersSecret, Array("1234".utf8))
    let hasPIN = suite.pinHash != nil
    let input = OCRAInput(
      counter: suite.hasCounter ? 1 : nil, question: asked, pin: hasPIN ? pin.span : nil,
      session: suite.sessionByteCount == nil ? nil : session.span, timeStep: suite.timeStepSeconds == nil ? nil : 1)
    let code = try OCRA.code(suite: suite, key: key.span, input: input, using: &cryptography)
    note("\(code)")
  },
  FuzzTarget("one-use-code", ["HoldfastCore/Activation/OneUseCode.swift"], maximumByteCount: 64) { bytes in
    guard let code = OneUseCode(bytes.span) else { return }
    var text: [UInt8] = []
    code.write(into: &text)
    note(text)
    let again = OneUseCode(text.span)
    try require(again != nil, "a code that was written is refused")
    let plain = bytes.filter { $0 != 0x2d && $0 != 0x20 }
    try require(text.filter { $0 != 0x2d }.count == plain.count, "a code that is written has another length")
  },
]
