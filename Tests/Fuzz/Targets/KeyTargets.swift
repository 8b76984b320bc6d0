import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL

/// The readers of keys and of device descriptors.
let keyTargets = [
  FuzzTarget("jwk", ["HoldfastFormats/JWK.swift", "HoldfastFormats/PublicKeyJWK.swift"], variantCount: 16) { bytes in
    if let key = attempt({ try PublicKeyJWK(json: bytes) }) {
      let text = key.json.compact()
      note(text)
      try require(try PublicKeyJWK(json: text) == key, "a public key that is written and read again differs")
    }
    if let secret = attempt({ try MACKeyJWK.decode(bytes.span) }) {
      try require(MACKeyJWK.isSymmetricKey(bytes.span), "a key that is shared is not known as a secret")
      var text = ByteBuffer<512>()
      try MACKeyJWK.encode(secret, into: &text)
      let again = try mustSucceed("a key that was written is refused") { try MACKeyJWK.decode(text.bytes) }
      try require(areEqual(again, secret), "a key that is written and read again differs")
    }
    attempt { _ = try JWEKey(parsing: bytes.span) }
    let key = try JWK.parse(bytes.span)
    if let scalar = attempt({ () throws -> Secret<32> in try key.p256Scalar() }) {
      scalar.withBytes { bytes in note(bytes.indices.map { bytes[$0] }) }
    }
    if let point = attempt({ try key.publicPoint() }) { note("\(point)") }
    attempt { _ = try key.ellipticPrivateKey() }
    if key.type == .rsa { _ = try key.rsaPrivateKey() } else { _ = try key.octets() }
  },
  FuzzTarget(
    "device-key", ["HoldfastDevice/Folder/DeviceKeyFile.swift", "HoldfastDevice/Anchor/TPMKey.swift"],
    maximumByteCount: 1024
  ) { bytes in
    if TPMKeyRecord.isOne(bytes.span) {
      let record = try TPMKeyRecord(bytes.span)
      note("\(record.place)")
      let key = TPMKey(record.place, authorization: record.authorization.copy(), operations: credulousTPM)
      attempt { _ = try DeviceSecrets(key, Signer.point, check: record.check) }
      let secrets = try DeviceSecrets(key, Signer.point, check: nil)
      var text = ByteBuffer<1024>()
      try secrets.encode(into: &text)
      let again = try mustSucceed("a record that was written is refused") { try TPMKeyRecord(text.bytes) }
      _ = try mustSucceed("a key is not known again") { try DeviceSecrets(key, Signer.point, check: again.check) }
      return
    }
    let key = try P256PrivateKey(scalar: try DeviceKeyFile.decode(bytes.span))
    var text = ByteBuffer<512>()
    try DeviceKeyFile.encode(key, into: &text)
    let again = try mustSucceed("a key file that was written is refused") { try DeviceKeyFile.decode(text.bytes) }
    let secrets = try DeviceSecrets(scalar: again)
    note("\(secrets.publicPoint)")
    try require(secrets.publicPoint == key.publicPoint, "a key that is written and read again differs")
  },
  FuzzTarget(
    "public-key",
    [
      "HoldfastFormats/SubjectPublicKeyInfo.swift", "HoldfastFormats/PublicKeyJWK.swift",
      "HoldfastFormats/SignedDescriptor.swift",
    ]
  ) { bytes in
    if let key = attempt({ try SubjectPublicKeyInfo.publicKey(bytes) }) ?? nil {
      let text = SubjectPublicKeyInfo.base64(of: key.point)
      note(text)
      try require(SubjectPublicKeyInfo.point(base64: text) == key.point, "a public key in DER differs")
      return
    }
    let device = try DeviceDescriptor(json: bytes)
    note(device.encodedJSON)
    let signed = try SignedDescriptor(bytes, signature: try Signer.signature(over: bytes))
    try require(signed.isSignature(for: device, byOneOf: [Signer.point]), "a maker's signature does not count")
    try require(try DeviceDescriptor(json: device.encodedJSON) == device, "a descriptor differs")
  },
  FuzzTarget(
    "maker-signature", ["HoldfastFormats/MakerSignature.swift"],
    maximumByteCount: 128
  ) { bytes in
    let signer = MakerSignature.signer(of: [], bytes, among: [Signer.point])
    note("\(signer != nil) \(String(describing: MakerSignature.numbers(inDER: bytes)))")
    try require(signer == nil || bytes.count <= MakerSignature.maximumByteCount, "a signature is too long")
  },
  FuzzTarget(
    "release-keys",
    [
      "HoldfastFormats/ReleaseKeys/ReleaseRoots.swift", "HoldfastFormats/ReleaseKeys/ReleaseKeys.swift",
      "HoldfastIssuer/Service/ApprovedImage.swift",
    ]
  ) { bytes in
    var cryptography = OpenSSLCryptography()
    if let registry = try ReleaseKeyRegistry(SecretBytes(copying: bytes.span), using: &cryptography) {
      for id in registry.ids {
        note("\(id)")
        try require(registry.proofKey(id) != nil && registry.evidenceKey(id) != nil, "a registered key is not found")
      }
    }
    let newest = attempt { try ReleaseKeys(newestInKeyFile: bytes.span) }
    let roots = try ReleaseRoots(parsing: bytes.span)
    try require(newest != nil && (1...64).contains(roots.count), "a file of keys is read in two ways")
  },
]

/// A TPM that agrees with every point.
private let credulousTPM = TPMKeyOperations(
  make: { _, _, _ in Signer.point }, remove: { _ in }, agree: { _, _, _, shared in shared = Secret() })

private func areEqual(_ left: borrowing Secret<32>, _ right: borrowing Secret<32>) -> Bool {
  left.withBytes { left in right.withBytes { constantTimeEqual(left, $0) } }
}
