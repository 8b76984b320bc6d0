import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The kinds of messages. Source: RFC 9052 §2.
enum COSEKind: CaseIterable {
  case sign1, sign, mac0, mac, encrypt0, encrypt

  /// The member of an example's input.
  var memberName: String {
    switch self {
    case .sign1: "sign0"
    case .sign: "sign"
    case .mac0: "mac0"
    case .mac: "mac"
    case .encrypt0: "encrypted"
    case .encrypt: "enveloped"
    }
  }

  /// The tag, the number of elements, the context, and whether there are recipients.
  var form: (tag: UInt64, count: Int, context: StaticString, hasRecipients: Bool) {
    switch self {
    case .sign1: (18, 4, "Signature1", false)
    case .sign: (98, 4, "Signature", false)
    case .mac0: (17, 4, "MAC0", false)
    case .mac: (97, 5, "MAC", true)
    case .encrypt0: (16, 3, "Encrypt0", false)
    case .encrypt: (96, 4, "Encrypt", true)
    }
  }

  /// The kind with the same algorithms that has one key.
  var content: COSEKind {
    switch self {
    case .sign1, .sign: .sign1
    case .mac0, .mac: .mac0
    case .encrypt0, .encrypt: .encrypt0
    }
  }
}

/// An algorithm of COSE for content. Source: RFC 9053 §2.1, §3.1, §4.1.
struct COSEAlgorithm {
  let name: String
  let number: Int64
  /// The kind of messages with one key that have it.
  let kind: COSEKind
  /// The hash of a signature; nil for others.
  var hashName: String?
  var hmac: HMAC?
  /// The byte count of a MAC or of a key.
  var byteCount = 0

  /// The byte count of a key that is derived for it.
  var keyByteCount: Int { hmac?.byteCount ?? byteCount }

  static let all: [COSEAlgorithm] = [
    COSEAlgorithm(name: "ES256", number: -7, kind: .sign1, hashName: "SHA-256"),
    COSEAlgorithm(name: "ES384", number: -35, kind: .sign1, hashName: "SHA-384"),
    COSEAlgorithm(name: "ES512", number: -36, kind: .sign1, hashName: "SHA-512"),
    COSEAlgorithm(name: "HS256/64", number: 4, kind: .mac0, hmac: .sha256, byteCount: 8),
    COSEAlgorithm(name: "HS256", number: 5, kind: .mac0, hmac: .sha256, byteCount: 32),
    COSEAlgorithm(name: "HS384", number: 6, kind: .mac0, hmac: .sha384, byteCount: 48),
    COSEAlgorithm(name: "HS512", number: 7, kind: .mac0, hmac: .sha512, byteCount: 64),
    COSEAlgorithm(name: "A128GCM", number: 1, kind: .encrypt0, byteCount: 16),
    COSEAlgorithm(name: "A192GCM", number: 2, kind: .encrypt0, byteCount: 24),
    COSEAlgorithm(name: "A256GCM", number: 3, kind: .encrypt0, byteCount: 32),
  ]

  /// Returns the algorithm that headers name.
  static func named(_ number: Int64?, _ kind: COSEKind) throws(Refusal) -> COSEAlgorithm {
    guard let algorithm = all.first(where: { $0.number == number && $0.kind == kind }) else {
      throw Refusal(reason: "alg")
    }
    return algorithm
  }
}

/// A message, parsed. Its tag may be absent. Source: RFC 9052 §3 to §6.
struct COSEMessage {
  private let kind: COSEKind
  private let protected: [UInt8]
  private let headers: COSEHeaders
  private let content: [UInt8]
  private var tag: [UInt8] = []
  private var signers: [(protected: [UInt8], headers: COSEHeaders, signature: [UInt8])] = []
  private var recipients: [COSERecipient] = []

  init(_ encoded: [UInt8], kind: COSEKind) throws(Refusal) {
    self.kind = kind
    do throws(EncodingFault) {
      var reader = CBORReader(encoded.span)
      if try reader.nextMajorType() == .tag { try reader.tag(kind.form.tag) }
      try reader.array(of: kind.form.count)
      (protected, headers) = try COSEHeaders.read(&reader)
      content = [UInt8](try reader.byteString())
      if kind == .sign {
        for _ in 0..<(try reader.arrayHead()) {
          try reader.array(of: 3)
          let (protected, headers) = try COSEHeaders.read(&reader)
          signers.append((protected, headers, [UInt8](try reader.byteString())))
        }
      } else if kind.content != .encrypt0 {
        tag = [UInt8](try reader.byteString())
      }
      if kind.form.hasRecipients {
        for _ in 0..<(try reader.arrayHead()) { recipients.append(try COSERecipient(&reader)) }
      }
      try reader.finish()
    } catch { throw Refusal(reason: "CBOR") }
  }

  /// A key, and the external bytes that are authenticated with it.
  typealias Party = (key: JSONValue, external: [UInt8])

  /// Returns the content, which is authentic. Every signer must have the key at its place, and every key must be that of one recipient.
  func open(with parties: [Party]) throws(Refusal) -> [UInt8] {
    if kind == .sign {
      guard signers.count == parties.count else { throw Refusal(reason: "\(signers.count) signers") }
      for (signer, party) in zip(signers, parties) {
        let algorithm = try COSEAlgorithm.named(signer.headers.algorithm, .sign1)
        let message = structure(signer: signer.protected, party.external)
        try verify(signer.signature, of: message, algorithm, key: party.key.parsedKey())
      }
      return content
    }
    var opened: [UInt8] = []
    for (key, external) in parties { opened = try open(with: key, external) }
    return opened
  }

  private func open(with key: JSONValue, _ external: [UInt8]) throws(Refusal) -> [UInt8] {
    let algorithm = try COSEAlgorithm.named(headers.algorithm, kind.content)
    let message = structure(external)
    if kind == .sign1 {
      try verify(tag, of: message, algorithm, key: key.parsedKey())
      return content
    }
    let secret: [UInt8]
    if kind.form.hasRecipients {
      secret = try recipient(of: key).contentKey(for: algorithm, key: key)
    } else {
      secret = try key.parsedKey().secretOctets()
    }
    if kind.content == .encrypt0 { return try decrypt(algorithm, secret: secret, authenticating: message) }
    try verify(message, algorithm, secret: secret)
    return content
  }

  /// Returns the recipient that a key is for: the only one, or else the one with its id. Source: RFC 9052 §3.1, `kid`.
  private func recipient(of key: JSONValue) throws(Refusal) -> COSERecipient {
    let keyID = key["kid"]?.text.map { Array($0.utf8) }
    let found = recipients.count == 1 ? recipients : recipients.filter { $0.headers.keyID == keyID && keyID != nil }
    guard found.count == 1 else { throw Refusal(reason: "\(found.count) recipients with that key") }
    return found[0]
  }

  /// Returns the bytes that are signed, or authenticated with the content. Source: RFC 9052 §4.4, §5.3 and §6.3.
  private func structure(signer: [UInt8]? = nil, _ external: [UInt8]) -> [UInt8] {
    let hasContent = kind.content != .encrypt0
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: 3 + (hasContent ? 1 : 0) + (signer == nil ? 0 : 1))
    bytes.appendCBOR(text: kind.form.context)
    bytes.appendCBOR(bytes: protected.span)
    if let signer { bytes.appendCBOR(bytes: signer.span) }
    bytes.appendCBOR(bytes: external.span)
    if hasContent { bytes.appendCBOR(bytes: content.span) }
    return bytes
  }

  private func decrypt(
    _ algorithm: COSEAlgorithm, secret: [UInt8], authenticating data: [UInt8]
  ) throws(Refusal) -> [UInt8] {
    guard secret.count == algorithm.byteCount else { throw Refusal(reason: "key of \(secret.count) bytes") }
    guard headers.nonce.count == 12 else { throw Refusal(reason: "iv of \(headers.nonce.count) bytes") }
    let end = Array(content.suffix(16))
    guard let tag = AuthenticationTag(end.span) else { throw Refusal(reason: "tag") }
    var message = Array(content.dropLast(16))
    do throws(CryptographyFailure) {
      var bytes = message.mutableSpan
      try AESGCM.open(
        key: secret.span, nonce: headers.nonce.span, authenticating: data.span, message: &bytes, tag: tag)
    } catch { throw Refusal(reason: "tag") }
    return message
  }

  private func verify(
    _ signature: [UInt8], of message: [UInt8], _ algorithm: COSEAlgorithm, key: borrowing JWK
  ) throws(Refusal) {
    let point: [UInt8]
    do throws(KeyFault) { point = try key.publicPoint() } catch { throw Refusal(reason: "point") }
    guard let curveName = key.curve?.wycheproofName, let curve = LibcryptoCurve(curveName),
      let hashName = algorithm.hashName, let hash = LibcryptoHash(hashName),
      PairSignature.verifies(signature, of: message, hash: hash, point: point, on: curve)
    else { throw Refusal(reason: "signature") }
  }

  private func verify(_ message: [UInt8], _ algorithm: COSEAlgorithm, secret: [UInt8]) throws(Refusal) {
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
