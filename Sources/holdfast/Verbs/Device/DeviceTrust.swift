import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DeviceTrust: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "trust",
    abstract: "Trust an issuer's key, or stop trusting it. A running device applies this at once.",
    examples: [
      "holdfast device trust --dir lock service.json",
      "holdfast device trust --dir lock service.json --label backend \\\n--from 2027-01-01T00:00:00Z --until 2028-01-01T00:00:00Z",
      "holdfast device trust --dir lock --remove 0f1e2d3c4b5a6978",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Stop trusting the key, which may be given by its id.")
  var remove = false

  @Option(help: "The time from which the key is trusted, such as 2027-01-01T00:00:00Z; by default, at once.")
  var from: String?

  @Option(help: "The time from which the key is no longer trusted; by default, it always is.")
  var until: String?

  @Option(help: "A text about the key, of at most 64 bytes, which device show prints.")
  var label: String?

  @Argument(
    help: """
      A file with the issuer's public key: a JWK, as service show prints it, a JWK set, or PEM or DER, as openssl pkey -pubout \
      writes it; or a file with a key that service mac-key wrote.
      """,
    completion: .file())
  var issuer: String

  func check() throws(Failure) {
    guard try terms() == nil || !remove else {
      throw Failure(.usage, "--remove does not go with --from, --until and --label", hint: "leave them out")
    }
  }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let ledger = try owned.ledger()
    let now = SystemClock().unixSeconds()
    if remove {
      let keyID = try keyIDToRemove()
      let wasTrusted = try recording { () throws(LedgerFault) in try ledger.removeTrust(keyID, realClock: now) }
      guard wasTrusted else { throw Failure(.denied, "issuer \(hexadecimal(keyID)) was not trusted") }
      report(keyID, "trusted no longer")
      return
    }
    let text = try SecretInput.read(issuer, limit: IssuerKey.maximumByteCount)
    let agreement = try P256Point(agreementKeyIn: text, path: issuer)
    if let points = try JWKSet.points(text, path: issuer) {
      try trust(points, in: ledger, now: now)
      for point in points { try note(agreement, of: try IssuerKey.signing(point).keyID(), in: ledger) }
    } else {
      let key = try IssuerKey(text, path: issuer)
      let keyID = try key.keyID()
      let isNew = try trust(key, in: ledger, now: now)
      try note(agreement, of: keyID, in: ledger)
      report(keyID, isNew ? "trusted" : "trusted already", algorithm: IssuerAlgorithm(of: key))
      try noteEnd(now)
      if key.isMAC, try !owned.policyReading(ledger).policy.acceptsMAC {
        Console.note("its tokens are accepted once policy.json has the member \"issuer\": {\"mac\": true}")
      }
    }
  }

  /// Trusts each key of a set.
  private func trust(_ points: [P256Point], in ledger: some OwnerLedger, now: UInt64?) throws(Failure) {
    var outcomes: [JSONValue] = []
    for point in points {
      let key = IssuerKey.signing(point)
      let keyID = try key.keyID()
      let state = try trust(key, in: ledger, now: now) ? "trusted" : "trusted already"
      if output.json {
        outcomes.append(.object([("kid", .string(hexadecimal(keyID))), ("state", .string(state))]))
      } else {
        report(keyID, state)
      }
    }
    if output.json { Console.result(.object([("keys", .array(outcomes))])) }
    try noteEnd(now)
  }

  /// Records the key for agreement.
  private func note(_ agreement: P256Point?, of keyID: KeyID, in ledger: some OwnerLedger) throws(Failure) {
    guard let agreement else { return }
    _ = try recording { () throws(LedgerFault) in try ledger.setAgreementKey(agreement, of: keyID) }
  }

  /// Says that the trust has ended already.
  private func noteEnd(_ now: UInt64?) throws(Failure) {
    if let end = try terms()?.until, let now, end <= now {
      Console.note("--until is in the past: no token of the issuer is accepted")
    }
  }

  /// Returns the terms of the trust; nil if no option gives any.
  private func terms() throws(Failure) -> TrustTerms? {
    guard from != nil || until != nil || label != nil else { return nil }
    var terms = TrustTerms()
    if let from { terms.from = try Timestamp(argument: from, of: "--from").unixSeconds }
    if let until { terms.until = try Timestamp(argument: until, of: "--until").unixSeconds }
    if let begin = terms.from, let end = terms.until, begin >= end {
      throw Failure(.usage, "--until must be later than --from")
    }
    if let label {
      guard let text = BoundedText<64>(label), !text.isEmpty else {
        throw Failure(.usage, "--label must have 1 to 64 bytes")
      }
      terms.label = text
    }
    return terms
  }

  private func trust(
    _ key: borrowing IssuerKey, in ledger: some OwnerLedger, now: UInt64?
  ) throws(Failure) -> Bool {
    guard let terms = try terms() else {
      return try recording { () throws(LedgerFault) in try ledger.trust(key, realClock: now) }
    }
    guard let ledger = ledger as? Ledger else {
      throw Failure(
        .usage, "--from, --until and --label do not work with --firmware: a board has no room for them",
        hint: "leave them out")
    }
    return try recording { () throws(LedgerFault) in try ledger.trust(key, terms: terms, realClock: now) }
  }

  private func keyIDToRemove() throws(Failure) -> KeyID {
    if let keyID: KeyID = fixedBytes(hexadecimal: issuer) { return keyID }
    return try IssuerKey(file: issuer).keyID()
  }

  private func report(_ keyID: KeyID, _ state: String, algorithm: IssuerAlgorithm? = nil) {
    if output.json {
      Console.result(
        .object(
          [("kid", .string(hexadecimal(keyID))), ("state", .string(state))]
            + (algorithm.map { [("algorithm", .string($0.rawValue))] } ?? [])))
    } else {
      Console.result("issuer \(hexadecimal(keyID))\(algorithm?.note ?? ""): \(state)")
    }
  }
}

extension P256Point {
  /// Reads the public key for agreement that a service announces next to its keys, in the contents of the file at `path`; nil if it
  /// announces none.
  init?(agreementKeyIn text: borrowing SecretBytes, path: String) throws(Failure) {
    guard !MACKeyJWK.isSymmetricKey(text.bytes) else { return nil }
    var bytes: [UInt8] = []
    bytes.append(text.bytes)
    guard let value = try? JSONValue(parsing: bytes, byteLimit: bytes.count), let key = value["agreement"] else {
      return nil
    }
    do throws(KeyFault) { self = try PublicKeyJWK(key).point } catch { throw Failure(error, path: path) }
  }

  /// Reads the same in the file of an issuer at `path`; `-` is standard input.
  init?(agreementKeyOfIssuer path: String) throws(Failure) {
    try self.init(agreementKeyIn: try SecretInput.read(path, limit: IssuerKey.maximumByteCount), path: path)
  }
}

extension IssuerKey {
  /// Reads an issuer's public key as PEM, DER or a JWK, the `issuer` of the output of `service show --json`, or a MAC key. `-` is standard
  /// input, but not for a MAC key, which must come from a file that only this user can access.
  init(file path: String) throws(Failure) {
    try self.init(try SecretInput.read(path, limit: Self.maximumByteCount), path: path)
  }

  /// The largest file, in bytes.
  fileprivate static var maximumByteCount: Int { 16_384 }

  /// Reads the key in the contents of the file at `path`.
  fileprivate init(_ text: borrowing SecretBytes, path: String) throws(Failure) {
    guard MACKeyJWK.isSymmetricKey(text.bytes) else {
      self = .signing(try PublicKeyJWK(issuer: text, path: path).point)
      return
    }
    guard path != "-" else {
      throw Failure(
        .malformed, "the key on standard input is secret", hint: "give the file itself, which others cannot read")
    }
    let key: Result<Secret<32>, KeyFault>
    do throws(FileError) {
      key = try Files.readSecretFile(at: path, limit: MACKeyJWK.maximumByteCount) { text in
        do throws(KeyFault) { return .success(try MACKeyJWK.decode(text)) } catch { return .failure(error) }
      }
    } catch { throw Failure(error) }
    switch consume key {
    case .success(let key): self = .mac(key)
    case .failure(let fault): throw Failure(fault, path: path)
    }
  }

  borrowing func keyID() throws(Failure) -> KeyID {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try HoldfastCore.keyID(of: self, using: &cryptography) } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
  }
}

/// A set of issuers' public keys. Source: RFC 7517 §5.
private enum JWKSet {
  /// Reads the keys in the contents of the file at `path`, each of which must be a public key of P-256 for signatures; nil if they are
  /// no set.
  static func points(_ text: borrowing SecretBytes, path: String) throws(Failure) -> [P256Point]? {
    guard !MACKeyJWK.isSymmetricKey(text.bytes) else { return nil }
    var bytes: [UInt8] = []
    bytes.append(text.bytes)
    guard let value = try? JSONValue(parsing: bytes, byteLimit: bytes.count), let member = value["keys"] else {
      return nil
    }
    guard let keys = member.elements, 1...64 ~= keys.count else { throw Failure(KeyFault.unexpected, path: path) }
    var points: [P256Point] = []
    for key in keys {
      guard key["use"].map({ $0 == .string("sig") }) ?? true, key["alg"].map({ $0 == .string("ES256") }) ?? true else {
        throw Failure(KeyFault.unexpected, path: path)
      }
      do throws(KeyFault) { points.append(try PublicKeyJWK(key).point) } catch { throw Failure(error, path: path) }
    }
    return points
  }
}

extension PublicKeyJWK {
  fileprivate init(issuer text: borrowing SecretBytes, path: String) throws(Failure) {
    var bytes: [UInt8] = []
    bytes.append(text.bytes)
    do throws(KeyFault) {
      if let key = try SubjectPublicKeyInfo.publicKey(bytes) {
        self = key
        return
      }
    } catch { throw Failure(error, path: path) }
    let value: JSONValue
    do throws(JSONFault) { value = try JSONValue(parsing: bytes, byteLimit: 16_384) } catch {
      throw Failure(KeyFault.malformed, path: path)
    }
    do throws(KeyFault) { try self.init(value["issuer"] ?? value) } catch { throw Failure(error, path: path) }
  }
}

extension IssuerAlgorithm {
  /// The note next to the key id of an issuer that does not sign.
  var note: String {
    switch self {
    case .es256: ""
    case .hs256: " (MAC)"
    }
  }
}
