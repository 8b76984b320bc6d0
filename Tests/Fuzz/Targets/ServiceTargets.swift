import HoldfastCore
import HoldfastFormats
import HoldfastService

/// The readers of the online service: bodies, manifests and codes.
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
    try require(manifest.trees.count <= manifest.versions.count, "a manifest has more trees than images")
  },
  FuzzTarget("invitation-code", ["HoldfastService/Enrolment/InvitationCode.swift"], maximumByteCount: 64) { bytes in
    guard let code = InvitationCode(String(decoding: bytes, as: UTF8.self)) else { return }
    try require(InvitationCode(code.text)?.text == code.text, "the code of an invitation differs")
  },
]

private func check(_ value: JSONValue, _ form: [Schema.Property]) throws {
  do throws(JSONMistake) { try Schema.check(JSONMember(value), form) } catch {
    _ = error.text
    return
  }
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
