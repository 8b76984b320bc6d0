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
    // Only the least cost of scrypt, whose key is derived at once.
    guard bytes.starts(with: Array("hfstate1AQEB".utf8)) else { return }
    var cryptography = OpenSSLCryptography()
    let passphrase = try Passphrase(Array("correct horse".utf8).span)
    let state = try StateString.open(bytes.span, under: passphrase, using: &cryptography)
    note([UInt8](state.bytes))
  },
  FuzzTarget(
    "state-records",
    [
      "HoldfastAuthenticator/State/AuthenticatorTables.swift", "HoldfastAuthenticator/State/StateString.swift",
      "HoldfastAuthenticator/Protection/Protection.swift", "HoldfastAuthenticator/Protection/UndoCode.swift",
      "HoldfastCore/OATH/CodeMethod.swift",
    ]
  ) { bytes in
    var reader = CBORReader(bytes.span)
    let record = try StoredRecord(&reader)
    try reader.finish()
    note("\(record.record)")
    var written: [UInt8] = []
    record.encode(into: &written)
    try require(written == bytes, "a record that is read and written again differs")
    if let protection = record.secret?.protection {
      let again = try mustSucceed("a protection that was written is refused") {
        try Protection(encoded: protection.encoded)
      }
      try require(again == protection, "a protection that is written and read again differs")
    }
    if let undo = record.undo {
      var cryptography = OpenSSLCryptography()
      var random = RepeatingRandom([0])
      let code = try UndoCode(random: &random)
      let secret = UndoCopy.open(undo, for: record.record, under: code, using: &cryptography)
      note("\(secret?.protection.encoded ?? [])")
    }
  },
  FuzzTarget(
    "typed",
    [
      "HoldfastAuthenticator/Protection/UndoCode.swift", "HoldfastAuthenticator/PIN/PIN.swift",
      "HoldfastAuthenticator/Records/Authenticator+Seals.swift",
    ], maximumByteCount: 128
  ) { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    if let code = attempt({ () throws -> UndoCode in try UndoCode(bytes.span) }) {
      let written = try code.withText { [UInt8]($0) }
      note(written)
      let again = try mustSucceed("an undo code that was written is refused") { try UndoCode(written.span) }
      try require(try again.withText { [UInt8]($0) } == written, "an undo code differs")
    }
    if let fault = attempt({ try PIN(bytes.span).ruleFault }) { note(String(describing: fault)) }
    attempt { _ = try Passphrase(bytes.span).copyIsSame }
    if let challenge = DeviceChallenge(text) {
      note(challenge.digits)
      try require(DeviceChallenge(challenge.digits)?.digits == challenge.digits, "a challenge differs")
    }
    if let request = attempt({ try SealRequest(command: text, parameters: [text]) }) {
      note("\(request.command) \(request.parameters)")
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
    attempt { _ = try Credential.read(bytes.span, format: format, parameters: ImportParameters()) }
    for key in containerKeys where !key.isSlow(for: bytes) {
      var parameters = ImportParameters(containerKey: key.containerKey)
      (parameters.acceptsUncheckedSignature, parameters.acceptsUnenforcedPolicy) = (true, true)
      guard let read = attempt({ try Credential.read(bytes.span, format: format, parameters: parameters) }) else {
        continue
      }
      try check(read)
    }
  }
}

private func check(_ read: [Credential]) throws {
  try require(!read.isEmpty, "a file without accounts is read")
  for credential in read {
    try require(
      (1...Credential.maximumSecretByteCount).contains(credential.secret.count), "a secret has an impossible length")
    note("\(credential.user)|\(credential.issuer)|\(credential.method)|\(credential.nextCounter)")
    credential.secret.withBytes { secret in note(secret.indices.map { secret[$0] }) }
    try require(!credential.user.unicodeScalars.contains { $0.value < 0x20 }, "a name has control characters")
    guard let uri = try? credential.otpauthURI() else { continue }
    let again = try mustSucceed("a URI that was written is refused") {
      try Credential.read(uri.bytes, format: .otpauth)
    }
    let isSame =
      again.count == 1 && again[0].user == credential.user && again[0].issuer == credential.issuer
      && again[0].method == credential.method && again[0].nextCounter == credential.nextCounter
      && again[0].secret.withBytes { left in credential.secret.withBytes { constantTimeEqual(left, $0) } }
    try require(isSame, "an account that is written and read again differs")
  }
}

private let containerKeys: [TriedKey] = [.zeros(16), .zeros(24), .zeros(32), .passphrase]

/// A key with which the fuzzer opens a container.
private enum TriedKey {
  case zeros(Int)
  case passphrase

  var containerKey: ContainerKey {
    switch self {
    case .zeros(let count): .preShared(SecretBytes(zeros: count))
    case .passphrase: .passphrase(SecretBytes(copying: Array("qwerty".utf8).span))
    }
  }

  /// Whether a container may have so many iterations that they take seconds: a number of six digits.
  func isSlow(for bytes: [UInt8]) -> Bool {
    guard case .passphrase = self else { return false }
    return bytes.split { !(0x30...0x39).contains($0) }.contains { $0.count > 5 }
  }
}
