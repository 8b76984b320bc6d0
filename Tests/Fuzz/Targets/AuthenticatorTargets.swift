import HoldfastAuthenticator
import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// The readers of an authenticator: files of other authenticators, its own state, and what people type.
let authenticatorTargets = [
  credentials(
    "otpauth", .otpauth,
    ["CredentialURI.swift", "PercentEncoding.swift", "Credential.swift", "SecretText.swift"]),
  credentials("migration", .migration, ["Migration.swift", "PercentEncoding.swift"]),
  credentials("pskc", .pskc, ["PSKC/PSKC.swift", "PSKC/PSKCProtection.swift", "PSKC/XMLDocument.swift"]),
  FuzzTarget("state-string", ["HoldfastAuthenticator/State/StateString.swift"]) { bytes in
    try Authenticator.checkState(bytes.span)
  },
  FuzzTarget(
    "state-records",
    [
      "HoldfastAuthenticator/State/AuthenticatorTables.swift", "HoldfastAuthenticator/State/StateString.swift",
      "HoldfastAuthenticator/Protection/Protection.swift", "HoldfastCore/OATH/CodeMethod.swift",
    ]
  ) { bytes in
    var reader = CBORReader(bytes.span)
    let record = try StoredRecord(&reader)
    try reader.finish()
    var written: [UInt8] = []
    record.encode(into: &written)
    try require(written == bytes, "a record that is read and written again differs")
  },
  FuzzTarget(
    "typed",
    [
      "HoldfastAuthenticator/Protection/UndoCode.swift", "HoldfastAuthenticator/PIN/PIN.swift",
      "HoldfastAuthenticator/Records/Authenticator+Seals.swift",
    ], maximumByteCount: 128
  ) { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    if let code = try? UndoCode(bytes.span) {
      let written = try code.withText { [UInt8]($0) }
      let again = try mustSucceed("an undo code that was written is refused") { try UndoCode(written.span) }
      try require(try again.withText { [UInt8]($0) } == written, "an undo code differs")
    }
    _ = try? PIN(bytes.span).ruleFault
    _ = try? Passphrase(bytes.span).copyIsSame
    if let challenge = DeviceChallenge(text) {
      try require(DeviceChallenge(challenge.digits)?.digits == challenge.digits, "a challenge differs")
    }
    if let request = try? SealRequest(command: text, parameters: [text]) {
      let again = try mustSucceed("a normalised command is refused") {
        try SealRequest(command: request.command, parameters: request.parameters)
      }
      try require(again == request, "a normalised command is not normal")
    }
  },
]

extension Passphrase {
  fileprivate var copyIsSame: Bool { isSame(as: self) }
}

private func credentials(_ name: String, _ format: CredentialFormat, _ files: [String]) -> FuzzTarget {
  FuzzTarget(name, files.map { "HoldfastAuthenticator/Formats/\($0)" }, maximumByteCount: 3072) { bytes in
    if let detected = CredentialFormat.detect(bytes.span), detected != format { return }
    var parameters = ImportParameters(containerKey: .preShared(SecretBytes(zeros: 16)))
    (parameters.acceptsUncheckedSignature, parameters.acceptsUnenforcedPolicy) = (true, true)
    let read = try Credential.read(bytes.span, format: format, parameters: parameters)
    try require(!read.isEmpty, "a file without accounts is read")
    for credential in read {
      try require(
        (1...Credential.maximumSecretByteCount).contains(credential.secret.count), "a secret has an impossible length")
      try require(!credential.user.unicodeScalars.contains { $0.value < 0x20 }, "a name has control characters")
    }
  }
}
