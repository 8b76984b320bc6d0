import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// A host's signed statement about its posture, for another party to check.
///
/// It is a compact JWS (ES256, `typ` `holdfast-posture+jwt`) by the key that follows from the host's device secret. Its claims are
/// `iat`, `nonce` (base64url of 16 bytes, or null), `findings` (name and state), `rules` (the number, or null), `verdict` (the worst
/// consequence, or null), `release` (the id of the measurement proof key, 16 hexadecimal digits), `cnf` (the public key, as in RFC
/// 7800) and `mac` (base64url): the HMAC-SHA-256, under the release's evidence key, of `"holdfast/1 posture" ‖ 0x00 ‖` the public
/// point of 65 bytes. The MAC shows that a program with the keys of that release held the key.
package struct PostureStatement: Sendable {
  /// The value of `typ`.
  package static let type = "holdfast-posture+jwt"

  /// The time of the statement by the host's clock, in Unix seconds.
  package let issued: UInt64
  /// The nonce of the party that asked, 16 bytes; nil if nobody did.
  package let nonce: Nonce?
  /// The state of each finding by its name.
  package let findings: [(name: String, state: PostureState)]
  /// The number of the host's rules; nil if it has none.
  package let rulesNumber: UInt64?
  /// The verdict of the host's rules; nil if it has none.
  package let action: PostureAction?
  /// The release of the program that made the statement, by its own account.
  package let release: KeyID
  /// Whether the MAC was made with the evidence key of the release; nil if the caller has no such key.
  package let isOfRelease: Bool?
}

extension Prover {
  /// Looks at the posture and signs what was found.
  ///
  /// - Parameters:
  ///   - nonce: the nonce of the party that asks, so that it can tell an old statement; nil if it goes by the time.
  ///   - posture: what was found.
  ///   - verdict: the verdict of the installed rules, with their number; nil if there are none.
  ///   - now: the present time, in Unix seconds.
  package func sign(
    _ posture: Posture, judged verdict: (number: UInt64, action: PostureAction)?, nonce: Nonce?, now: UInt64,
    files: HostFiles = HostFiles()
  ) throws(ProverError) -> [UInt8] {
    do throws(MeasurementError) {
      var key = try PostureKey.ofHost(files)
      let point = key.publicPoint
      let release = try keys.currentID()
      do throws(CryptographyFailure) {
        let mac = try PostureStatement.mac(of: point, keys.evidenceKey())
        let findings = posture.observations.map { ($0.finding.rawValue, JSONValue.string($0.state.rawValue)) }
        let claims = JSONValue.object([
          ("iat", .integer(now)), ("nonce", nonce.map { .string(base64URL($0.bytes)) } ?? .null),
          ("findings", .object(findings)), ("rules", verdict.map { .integer($0.number) } ?? .null),
          ("verdict", verdict.map { .string($0.action.rawValue) } ?? .null),
          ("release", .string(hexadecimal(release))),
          ("cnf", .object([("jwk", PublicKeyJWK(point: point).json)])), ("mac", .string(base64URL(mac.bytes))),
        ])
        return try SignedJSON.sign(claims, type: PostureStatement.type, with: &key)
      } catch { throw .cryptography }
    } catch { throw .measurement(error) }
  }
}

extension PostureStatement {
  /// The MAC by which a release vouches for a host's key.
  fileprivate static func mac(of point: P256Point, _ key: borrowing EvidenceKey) throws(CryptographyFailure) -> MAC {
    var cryptography = OpenSSLCryptography()
    return try key.withBytes { (key: Span<UInt8>) throws(CryptographyFailure) in
      var mac = try cryptography.hmacSHA256(key: key)
      mac.append(domain: "holdfast/1 posture")
      mac.append(point.bytes)
      return try mac.finish()
    }
  }

  /// Checks a statement.
  ///
  /// - Parameters:
  ///   - text: the compact JWS; line ends after it are ignored.
  ///   - key: the host's key, as it was learnt before over a trustworthy way.
  ///   - findKey: returns the evidence key of the release with that id, in order to check the MAC; nil if there is none.
  /// - Throws: `SignedJSON.Fault`; `unexpected` also for other claims than the documented ones.
  ///
  /// The MAC is compared in constant time.
  package init(
    checking text: [UInt8], by key: P256Point, findKey: (KeyID) -> EvidenceKey? = { _ in nil }
  ) throws(SignedJSON.Fault) {
    var text = text
    while let last = text.last, last == 0x0a || last == 0x0d { text.removeLast() }
    let claims = try SignedJSON.verify(text, type: Self.type, by: key)
    guard
      claims.hasOnly(["iat", "nonce", "findings", "rules", "verdict", "release", "cnf", "mac"]),
      let issued = claims["iat"]?.number, let findings = claims["findings"]?.members, findings.count <= 64,
      let release: KeyID = claims["release"]?.text.flatMap(fixedBytes(hexadecimal:)),
      claims["cnf"] == .object([("jwk", PublicKeyJWK(point: key).json)]),
      let code = claims["mac"]?.text, let nonce = claims["nonce"], let rules = claims["rules"],
      let verdict = claims["verdict"]
    else { throw .unexpected }
    (self.issued, self.release) = (issued, release)
    var states: [(String, PostureState)] = []
    for (name, value) in findings {
      guard let state = value.text.flatMap(PostureState.init) else { throw .unexpected }
      states.append((name, state))
    }
    self.findings = states
    self.nonce = try Self.bytes(nonce)
    (rulesNumber, action) = (rules.number, verdict.text.flatMap(PostureAction.init))
    guard rules == .null ? verdict == .null : rulesNumber != nil && action != nil else { throw .unexpected }
    guard let code: MAC = try Self.bytes(.string(code)) else { throw .unexpected }
    guard let evidenceKey = findKey(release) else {
      isOfRelease = nil
      return
    }
    do throws(CryptographyFailure) {
      isOfRelease = constantTimeEqual(try Self.mac(of: key, evidenceKey).bytes, code.bytes)
    } catch { throw .notAuthentic }
  }

  private static func bytes<Kind, let count: Int>(
    _ value: JSONValue
  ) throws(SignedJSON.Fault) -> TypedBytes<Kind, count>? {
    if value == .null { return nil }
    guard let text = value.text, let bytes = try? decodePublicBase64URL(text),
      let fixed = TypedBytes<Kind, count>(bytes.span)
    else { throw .unexpected }
    return fixed
  }
}
