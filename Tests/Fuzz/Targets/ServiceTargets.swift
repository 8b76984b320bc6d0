import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastService

/// The readers of the online service: bodies, forms, manifests, codes and backups.
let serviceTargets = [
  FuzzTarget(
    "http-body",
    [
      "HoldfastService/OpenAPI/Schema.swift", "HoldfastService/OpenAPI/PublicOperation.swift",
      "HoldfastService/Administration/AdministrationOperations.swift", "HoldfastService/OpenAPI/Schemas.swift",
    ], maximumByteCount: 8192
  ) { bytes in
    guard let first = bytes.first else { return }
    let text = Array(bytes.dropFirst())
    let value = try JSONValue(parsing: text, byteLimit: text.count, otherNumbers: .withoutFraction)
    // The body of one operation, or of any.
    for form in first == 0xff ? bodyForms : [bodyForms[Int(first) % bodyForms.count]] { try check(value, form) }
  },
  FuzzTarget("release-manifest", ["HoldfastService/Administration/ReleaseManifest.swift"]) { bytes in
    let manifest = try ReleaseManifest(bytes, signature: try Signer.signature(over: bytes), maker: maker)
    note("\(manifest.versions.map { "\($0)" }.sorted()) \(manifest.trees.map { "\($0)" }.sorted())")
    try require(manifest.trees.count <= manifest.versions.count, "a manifest has more trees than images")
  },
  FuzzTarget("invitation-code", ["HoldfastService/Enrolment/InvitationCode.swift"], maximumByteCount: 64) { bytes in
    guard let code = InvitationCode(String(decoding: bytes, as: UTF8.self)) else { return }
    note(code.text)
    try require(InvitationCode(code.text)?.text == code.text, "the code of an invitation differs")
  },
  FuzzTarget("form", ["HoldfastFormats/FormData.swift"]) { bytes in
    guard let form = FormData(String(decoding: bytes, as: UTF8.self)) else { return }
    note("\(form.pairs)")
    let written = form.pairs.map { "\(FormData.encoded($0.name))=\(FormData.encoded($0.value))" }
    let again = FormData(written.joined(separator: "&"))?.pairs ?? []
    let isSame =
      again.count == form.pairs.count
      && zip(again, form.pairs).allSatisfy { haveSameBytes($0.name, $1.name) && haveSameBytes($0.value, $1.value) }
    try require(isSame, "a form that is written and read again differs")
  },
  FuzzTarget(
    "backup", ["HoldfastService/Backup/BackupRecords.swift", "HoldfastService/Backup/BackupSealing.swift"]
  ) { bytes in
    // The bytes are encrypted, as only a holder of the service key can. After the byte 0xff, they follow a chunk.
    let key = ServiceKey(Secret())
    var random = SystemRandom()
    let sealing = try BackupSealing.writing(with: key, random: &random)
    let bytes = bytes.first == 0xff ? wholeChunk + bytes.dropFirst() : bytes
    let chunks = stride(from: 0, to: max(bytes.count, 1), by: BackupSealing.chunkByteCount).map { start in
      Array(bytes[start..<min(start + BackupSealing.chunkByteCount, bytes.count)])
    }
    let sealed = try chunks.indices.flatMap { try sealing.seal(chunks[$0], isLast: $0 == chunks.count - 1) }
    var rest = (sealing.header + sealed)[...]
    let reader = try BackupReader(with: key) { count in
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
    var written = Array(bytes.prefix(16))
    var isComplete = false
    while !isComplete {
      let record = try reader.next()
      record.append(to: &written)
      if case .end = record { isComplete = true }
    }
    try require(written == bytes, "a backup that is read and written again differs")
  },
]

/// The beginning of a backup, and one row, which fill a chunk together.
private let wholeChunk: [UInt8] = {
  let count = BackupSealing.chunkByteCount - 16 - 7
  let head = [UInt8(ascii: "R"), 1, 3, 0, 0, UInt8(count >> 8), UInt8(count & 0xff)]
  return [UInt8](repeating: 0, count: 16) + head + [UInt8](repeating: 0, count: count)
}()

private func check(_ value: JSONValue, _ form: [Schema.Property]) throws {
  do throws(JSONMistake) { try Schema.check(JSONMember(value), form) } catch {
    return note(error.text)
  }
  note("taken")
  // What is optional may be left out, and what is required may not.
  for property in form {
    let rest = JSONValue.object((value.members ?? []).filter { !haveSameBytes($0.0, property.name) })
    let isAccepted = (try? Schema.check(JSONMember(rest), form)) != nil
    try require(isAccepted != property.isRequired, "\(property.name) is not required as the table says")
  }
}

private let bodyForms =
  PublicOperation.all.compactMap(\.body) + AdministrationOperation.all.compactMap(\.body)

/// The signer's public key in PEM.
private let maker = Array(
  "-----BEGIN PUBLIC KEY-----\n\(SubjectPublicKeyInfo.base64(of: Signer.point))\n-----END PUBLIC KEY-----\n".utf8)
