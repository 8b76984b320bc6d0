import HoldfastCore
import HoldfastFormats
import HoldfastQRCode
import TestSupport

/// The readers of the formats that several programs share.
let formatTargets = [
  FuzzTarget(
    "terms",
    [
      "HoldfastFormats/Terms/Terms.swift", "HoldfastFormats/Terms/Conditions.swift",
      "HoldfastFormats/Terms/ComplianceRule.swift", "HoldfastFormats/Terms/AppSettings.swift",
    ]
  ) { bytes in
    attempt { _ = try SignedTerms(verifying: bytes) }
    let signed = try SignedTerms(verifying: try Signer.sign(bytes, type: SignedTerms.type))
    let again = try SignedTerms(signed.terms, point: Signer.point, sign: Signer.signature)
    let read = try mustSucceed("terms that were signed are refused") { try SignedTerms(verifying: again.bytes) }
    try require(read.terms == signed.terms, "terms that are signed and read again differ")
    let rules = signed.terms.conditions.rules
    note("\(signed.terms)")
    try require(signed.key.point == Signer.point, "terms count under another key")
    try require(rules.count <= ComplianceRule.maximumCount, "terms have too many rules")
    let end = signed.terms.offlineUntil
    note("\(String(describing: end))")
    for rule in rules {
      for version in rule.versions + rules[0].versions {
        let isMet = rule.isMet(by: version)
        note("\(isMet) \(version == rule.versions[0])")
      }
      note(rule.text)
      try require(!rule.text.isEmpty, "a rule has no text")
    }
  },
  FuzzTarget("seal-request", ["HoldfastFormats/SealRequestText.swift"], maximumByteCount: 1024) { bytes in
    let request = try UncheckedSealRequest(bytes)
    let secret = usersSecret
    note("\(request.contents)")
    let text = try mustSucceed("a request for a seal cannot be written") {
      try request.contents.text(under: secret.span)
    }
    // The code at the end depends on the secret.
    _ = try request.isAuthentic(under: secret.span)
    try require(text?.dropLast(32).elementsEqual(bytes.dropLast(32)) ?? false, "a request for a seal differs")
  },
  FuzzTarget("audit-archive", ["HoldfastFormats/Audit/AuditArchive.swift"]) { bytes in
    let archive = try AuditArchive(bytes)
    note("\(archive.entries.count)")
    let again = try mustSucceed("an archive that was written is refused") { try AuditArchive(archive.encoded()) }
    try require(again.entries == archive.entries && again.encoded() == archive.encoded(), "an archive differs")
  },
  FuzzTarget("timestamp", ["HoldfastFormats/Timestamp.swift"], maximumByteCount: 64) { bytes in
    guard let time = Timestamp(parsing: String(decoding: bytes, as: UTF8.self)) else { return }
    note("\(time.unixSeconds)")
    try require(
      Timestamp(parsing: time.description)?.unixSeconds == time.unixSeconds, "a time that is written and read differs")
  },
  FuzzTarget("signed-json", ["HoldfastFormats/SignedJSON.swift"]) { bytes in
    attempt { _ = try SignedJSON.verify(bytes, type: "fuzz", by: Signer.point) }
    let value = try SignedJSON.verify(try Signer.sign(bytes, type: "fuzz"), type: "fuzz", by: Signer.point)
    let plain = try JSONValue(parsing: bytes, byteLimit: bytes.count)
    try require(value == plain, "a signed text has other contents than the same text")
    note(value.compact())
    let canSign = CustomPayload.canSign(value)
    note("\(canSign)")
  },
  FuzzTarget("terminal-text", ["HoldfastFormats/String+Terminal.swift"], maximumByteCount: 256) { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    for shown in [text.printable, text.quoted] {
      note(shown)
      try require(
        !shown.unicodeScalars.contains { $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) },
        "a text for a terminal has control characters")
    }
    let word = text.shellWord
    note(word)
  },
  FuzzTarget("qr", ["HoldfastQRCode/QRCode.swift"], maximumByteCount: 2400) { bytes in
    let code = try QRCode(encoding: bytes.span)
    try require((21...177).contains(code.width) && code.width % 4 == 1, "a QR code has an impossible width")
    try require(code.isDark(row: 0, column: 0), "a QR code has no finder pattern")
    code.drawing(contrast: .lightOnDark).withBytes { drawn in note(drawn.indices.map { drawn[$0] }) }
  },
]
