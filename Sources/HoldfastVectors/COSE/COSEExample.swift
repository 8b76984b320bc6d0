import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// An example of the COSE working group, which is a file of its own: a `COSE_Sign1`, `COSE_Mac0` or `COSE_Encrypt0`, and the
/// key for it.
///
/// Holdfast's CBOR reader, keys, HMAC and AES-GCM are under test. Source: github.com/cose-wg/Examples; RFC 9052, RFC 9053.
struct COSEExample: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let input = try test.node.member("input")
    let encoded = try test.node.member("output").member("cbor").bytes()
    guard let kind = COSEKind(of: input.value) else { return .skipped("a COSE message with recipients or signers") }
    let message = try input.member(kind.memberName)
    guard let algorithm = message.optional("protected")?.value["alg"] ?? message.optional("unprotected")?.value["alg"],
      let name = algorithm.text, COSEAlgorithm.all.contains(where: { $0.name == name && $0.kind == kind })
    else { return .skipped("another alg of COSE") }
    let key = try key(of: message, kind)
    let external = try message.optional("external")?.bytes() ?? []
    let plaintext =
      if let hexadecimal = input.optional("plaintext_hex") {
        try hexadecimal.bytes()
      } else {
        Array(try input.member("plaintext").text().utf8)
      }
    do throws(Refusal) {
      let parsed = try COSEMessage(encoded, kind: kind)
      return try parsed.open(with: key, external: external) == plaintext ? .accepted : .differs("plaintext")
    } catch { return .refused(error.reason) }
  }

  /// Returns the key of a message as a JSON Web Key. In some examples, numbers are hexadecimal, and their names say so.
  private func key(of message: VectorNode, _ kind: COSEKind) throws(VectorFault) -> JSONValue {
    var holder = message
    if kind != .signature {
      let recipients = try message.member("recipients")
      guard let first = try recipients.elements().first else { throw recipients.fault(.wrongValue) }
      holder = first
    }
    let key = try holder.member("key")
    var members: [(String, JSONValue)] = []
    for (name, value) in key.value.members ?? [] {
      guard name.hasSuffix("_hex") else {
        members.append((name, value))
        continue
      }
      let bytes = try key.member(name).bytes()
      members.append((String(name.dropLast(4)), .string(base64URL(bytes.span))))
    }
    return .object(members)
  }
}

/// The kinds of messages that have one key and no recipient or signer. Source: RFC 9052 §2.
private enum COSEKind {
  case signature, mac, encryption

  init?(of input: JSONValue) {
    if input["sign0"] != nil {
      self = .signature
    } else if input["mac0"] != nil {
      self = .mac
    } else if input["encrypted"] != nil {
      self = .encryption
    } else {
      return nil
    }
  }

  /// The member of an example's input.
  var memberName: String {
    switch self {
    case .signature: "sign0"
    case .mac: "mac0"
    case .encryption: "encrypted"
    }
  }

  /// The tag, the number of elements, and the context.
  var form: (tag: UInt64, count: Int, context: StaticString) {
    switch self {
    case .signature: (18, 4, "Signature1")
    case .mac: (17, 4, "MAC0")
    case .encryption: (16, 3, "Encrypt0")
    }
  }
}

/// An algorithm of COSE. Source: RFC 9053 §2.1, §3.1, §4.1.
private struct COSEAlgorithm {
  let name: String
  let number: Int64
  let kind: COSEKind
  /// The hash of a signature; nil for others.
  var hashName: String?
  var hmac: HMAC?
  /// The byte count of a MAC or of a key.
  var byteCount = 0

  static let all: [COSEAlgorithm] = [
    COSEAlgorithm(name: "ES256", number: -7, kind: .signature, hashName: "SHA-256"),
    COSEAlgorithm(name: "ES384", number: -35, kind: .signature, hashName: "SHA-384"),
    COSEAlgorithm(name: "ES512", number: -36, kind: .signature, hashName: "SHA-512"),
    COSEAlgorithm(name: "HS256/64", number: 4, kind: .mac, hmac: .sha256, byteCount: 8),
    COSEAlgorithm(name: "HS256", number: 5, kind: .mac, hmac: .sha256, byteCount: 32),
    COSEAlgorithm(name: "HS384", number: 6, kind: .mac, hmac: .sha384, byteCount: 48),
    COSEAlgorithm(name: "HS512", number: 7, kind: .mac, hmac: .sha512, byteCount: 64),
    COSEAlgorithm(name: "A128GCM", number: 1, kind: .encryption, byteCount: 16),
    COSEAlgorithm(name: "A192GCM", number: 2, kind: .encryption, byteCount: 24),
    COSEAlgorithm(name: "A256GCM", number: 3, kind: .encryption, byteCount: 32),
  ]
}

/// A message, parsed. Its tag may be absent. Source: RFC 9052 §3 and §4.2.
private struct COSEMessage {
  private let kind: COSEKind
  private let algorithm: COSEAlgorithm
  private let protected: [UInt8]
  private let nonce: [UInt8]
  private let content: [UInt8]
  private var tag: [UInt8] = []

  init(_ encoded: [UInt8], kind: COSEKind) throws(Refusal) {
    self.kind = kind
    var headers = COSEHeaders()
    let protected: [UInt8]
    do throws(EncodingFault) {
      var reader = CBORReader(encoded.span)
      if try reader.nextMajorType() == .tag { try reader.tag(kind.form.tag) }
      try reader.array(of: kind.form.count)
      protected = [UInt8](try reader.byteString())
      if !protected.isEmpty {
        var inner = CBORReader(protected.span)
        try headers.read(&inner)
        try inner.finish()
      }
      try headers.read(&reader)
      content = [UInt8](try reader.byteString())
      if kind != .encryption { tag = [UInt8](try reader.byteString()) }
      try reader.finish()
    } catch { throw Refusal(reason: "CBOR") }
    let number = headers.algorithm
    guard let algorithm = COSEAlgorithm.all.first(where: { $0.number == number && $0.kind == kind }) else {
      throw Refusal(reason: "alg")
    }
    // An empty map is authenticated as no bytes at all. Source: RFC 9052 §4.4.
    self.protected = protected == [0xa0] ? [] : protected
    self.algorithm = algorithm
    nonce = headers.nonce
  }

  /// Returns the content, which is authentic.
  func open(with key: JSONValue, external: [UInt8]) throws(Refusal) -> [UInt8] {
    var authenticated: [UInt8] = []
    authenticated.appendCBOR(array: kind.form.count)
    authenticated.appendCBOR(text: kind.form.context)
    authenticated.appendCBOR(bytes: protected.span)
    authenticated.appendCBOR(bytes: external.span)
    if kind != .encryption { authenticated.appendCBOR(bytes: content.span) }
    let parsed = try key.parsedKey()
    switch kind {
    case .signature: try verify(authenticated, parsed)
    case .mac: try verify(authenticated, secret: parsed.secretOctets())
    case .encryption:
      return try decrypt(secret: parsed.secretOctets(), authenticating: authenticated)
    }
    return content
  }

  private func decrypt(secret: [UInt8], authenticating data: [UInt8]) throws(Refusal) -> [UInt8] {
    guard secret.count == algorithm.byteCount else { throw Refusal(reason: "key of \(secret.count) bytes") }
    guard nonce.count == 12 else { throw Refusal(reason: "iv of \(nonce.count) bytes") }
    let end = Array(content.suffix(16))
    guard let tag = AuthenticationTag(end.span) else { throw Refusal(reason: "tag") }
    var message = Array(content.dropLast(16))
    do throws(CryptographyFailure) {
      var bytes = message.mutableSpan
      try AESGCM.open(
        key: secret.span, nonce: nonce.span, authenticating: data.span, message: &bytes, tag: tag)
    } catch { throw Refusal(reason: "tag") }
    return message
  }

  private func verify(_ message: [UInt8], _ key: borrowing JWK) throws(Refusal) {
    let point: [UInt8]
    do throws(KeyFault) { point = try key.publicPoint() } catch { throw Refusal(reason: "point") }
    guard let curveName = key.curve?.wycheproofName, let curve = LibcryptoCurve(curveName),
      let hashName = algorithm.hashName, let hash = LibcryptoHash(hashName),
      PairSignature.verifies(tag, of: message, hash: hash, point: point, on: curve)
    else { throw Refusal(reason: "signature") }
  }

  private func verify(_ message: [UInt8], secret: [UInt8]) throws(Refusal) {
    guard let hmac = algorithm.hmac, tag.count == algorithm.byteCount else {
      throw Refusal(reason: "MAC of \(tag.count) bytes")
    }
    var expected = [UInt8](repeating: 0, count: tag.count)
    do throws(CryptographyFailure) {
      var output = expected.mutableSpan
      try hmac.authenticate(message.span, key: secret.span, into: &output)
    } catch { throw Refusal(reason: "MAC") }
    guard constantTimeEqual(expected.span, tag.span) else { throw Refusal(reason: "MAC") }
  }
}

/// The members of a message's protected and unprotected header, in which a label may occur only once. Source: RFC 9052 §3.1.
private struct COSEHeaders {
  var algorithm: Int64?
  var nonce: [UInt8] = []

  mutating func read(_ reader: inout CBORReader) throws(EncodingFault) {
    for _ in 0..<(try reader.mapHead()) {
      guard try reader.nextMajorType() != .text else {
        _ = try reader.textString()
        try reader.skipValue()
        continue
      }
      switch try reader.integer() {
      case 1:
        guard algorithm == nil else { throw .unexpected }
        algorithm = try reader.integer()
      case 2: throw .unexpected
      case 5:
        guard nonce.isEmpty else { throw .unexpected }
        nonce = [UInt8](try reader.byteString())
      default: try reader.skipValue()
      }
    }
  }
}
