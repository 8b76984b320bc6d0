import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL

/// The readers of tokens: COSE and JOSE on the device, JOSE on the issuer's side.
let tokenTargets = [
  FuzzTarget("claims-cbor", claimSources) { bytes in
    var claims = MeasurementClaims()
    try claims.decode(cbor: bytes.span)
    let written = encoded(claims)
    note(written)
    guard written != bytes else { return }
    // The version 0.0.0 is that of a token without a version, and only the claim of it is not written.
    let zero: [UInt8] = [0x3a, 0, 1, 0x24, 0xfe, 0x83, 0, 0, 0]
    try require(
      !claims.has(.version) && bytes.count == written.count + zero.count && bytes.contains(zero),
      "claims that are read and written again differ")
  },
  FuzzTarget("claims-json", claimSources) { bytes in
    var claims = MeasurementClaims()
    try claims.decode(json: bytes.span)
    let cbor = encoded(claims)
    note(cbor)
    var again = MeasurementClaims()
    try mustSucceed("claims in JSON cannot be claims in CBOR") { try again.decode(cbor: cbor.span) }
    try require(encoded(again) == cbor, "claims that are read and written again differ")
  },
  FuzzTarget("cose", ["HoldfastCore/Token/COSE.swift", "HoldfastCore/Token/TokenOpener.swift"], maximumByteCount: 3200)
  {
    bytes in
    try open(bytes, .cose)
  },
  FuzzTarget("jose", ["HoldfastCore/Token/JOSE.swift", "HoldfastCore/Token/TokenOpener.swift"], maximumByteCount: 3200)
  {
    bytes in
    try open(bytes, .jose)
  },
  FuzzTarget("jwe", joseSources, maximumByteCount: 6144) { bytes in
    guard let first = bytes.first else { return }
    var text = Array(bytes.dropFirst())
    var known = Array(jweKeys[Int(first) % jweKeys.count].utf8)
    // A token behind its key, which is one line.
    if first == 0xff, let end = text.firstIndex(of: 0x0a) {
      (known, text) = (Array(text[..<end]), Array(text[(end + 1)...]))
    }
    var key = try JWEKey(parsing: known.span)
    let opened = try key.open(text.span, contentType: "JWT")
    note([UInt8](opened.bytes))
  },
  FuzzTarget("jws", joseSources) { bytes in
    var cryptography = OpenSSLCryptography()
    let key = JWSKey.hs256(SecretBytes(zeros: 32))
    let point = JWSKey.es256Public(Signer.point)
    let byPoint = attempt { try point.verify(bytes.span, type: "holdfast-at+jwt", using: &cryptography) }
    var scalar = Secret<32>()
    scalar.withMutableBytes { $0[31] = 1 }
    var pair = JWSKey.es256(try P256PrivateKey(scalar: scalar))
    if let text = try? pair.sign(bytes.span, type: "fuzz", using: &cryptography) {
      let read = try mustSucceed("a text that was signed is refused") {
        try pair.verify(text.bytes, type: "fuzz", using: &cryptography)
      }
      try require([UInt8](read.bytes) == bytes, "a text that is signed and read differs")
    }
    if let byPoint { return try readAttestation(byPoint.bytes) }
    let payload = try key.verify(bytes.span, type: "holdfast-at+jwt", using: &cryptography)
    try readAttestation(payload.bytes)
  },
  FuzzTarget("attestation", ["HoldfastIssuer/Attestation/AttestationClaims.swift"]) { bytes in
    try readAttestation(bytes.span)
  },
]

private let claimSources = [
  "HoldfastCore/Token/MeasurementClaims+Formats.swift", "HoldfastCore/Token/MeasurementClaims.swift",
  "HoldfastCore/Token/ClaimValue.swift",
]

private let joseSources = [
  "HoldfastIssuer/JOSE/HeaderParameters.swift", "HoldfastIssuer/JOSE/JWEKey.swift", "HoldfastIssuer/JOSE/JWSKey.swift",
]

private func readAttestation(_ bytes: borrowing Span<UInt8>) throws {
  let text = written(try AttestationClaims.read(bytes))
  note(text)
  let again = try mustSucceed("claims that were written are refused") { try AttestationClaims.read(text.span) }
  try require(written(again) == text, "claims that are written and read again differ")
}

private func written(_ claims: borrowing AttestationClaims) -> [UInt8] {
  var bytes: [UInt8] = []
  claims.appendJSON(to: &bytes)
  return bytes
}

private func encoded(_ claims: borrowing MeasurementClaims) -> [UInt8] {
  var bytes: [UInt8] = []
  claims.appendCBOR(to: &bytes)
  return bytes
}

/// An issuer that is trusted under every id: its MAC key under ids that begin with an even byte.
private struct AnyIssuer: IssuerTrust {
  func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    keyID[0] & 1 == 0 ? .mac(Secret()) : .signing(CredulousKey().publicPoint)
  }
}

/// Opens a token as a device does that believes every tag and every signature.
private func open(_ bytes: [UInt8], _ encoding: TokenEncoding) throws {
  var (key, trust, cryptography) = (CredulousKey(), AnyIssuer(), CredulousCryptography())
  let named = TokenRecipient.keyID(of: bytes.span, encoding: encoding)
  var opener = TokenOpener()
  var token = AuthenticatedToken()
  do throws(TokenFault) {
    try opener.open(
      bytes.span, encoding: encoding, key: &key, keyID: named ?? KeyID(), trust: &trust, acceptsUnsigned: true,
      acceptsMAC: true, using: &cryptography, into: &token)
  } catch {
    try require(error != .anotherDevice || named == nil, "the recipient of a token is read in two ways")
    throw error
  }
  note(encoded(token.claims))
  try require(named != nil, "a token without a recipient is opened")
  let claims = encoded(token.claims)
  var again = MeasurementClaims()
  try mustSucceed("claims of a token cannot be written") { try again.decode(cbor: claims.span) }
}

/// Private keys of each way to agree on a content key. All numbers are 0 or 1.
private let jweKeys: [String] = {
  let zeros = String(repeating: "A", count: 43)
  let elliptic =
    #""kty":"EC","crv":"P-256","x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY","#
    + #""y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU","d":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE""#
  let octets = #""kty":"oct","k":"\#(zeros)""#
  return [
    #"{\#(octets),"alg":"dir","enc":"A256GCM"}"#, #"{\#(octets),"alg":"dir","enc":"A128CBC-HS256"}"#,
    #"{\#(octets),"alg":"A256KW","enc":"A256GCM"}"#, #"{\#(octets),"alg":"A256GCMKW","enc":"A256GCM"}"#,
    #"{\#(elliptic),"alg":"ECDH-ES","enc":"A256GCM"}"#, #"{\#(elliptic),"alg":"ECDH-ES+A256KW","enc":"A256GCM"}"#,
  ]
}()
