import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastReplay

/// The vectors `Bulletin`: bulletins, signed or sealed, that a device in some groups reads or refuses, and their claims.
///
/// Source: docs/couriers.md, Bulletins and Claims. Numbers are not compared, and times are not checked.
struct BulletinVectors: ReplayableGroup {
  private let parties: Parties
  private let audiences: [AudienceID]

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    parties = try Parties(group)
    var audiences = [AudienceID(parties.deviceID.bytes)!]
    for name in try group.member("groups").elements() {
      guard let audience = audienceID(ofGroup: try name.text()) else { throw name.fault(.wrongValue) }
      audiences.append(audience)
    }
    self.audiences = audiences
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bulletin = try test.bytes("bulletin")
    let expected = test.result == .valid ? try test.node.member("claims") : nil
    do throws(Refusal) {
      let claims = try read(bulletin)
      guard let expected else { return .accepted }
      return claims == expected.value ? .accepted : .differs("claims")
    } catch { return .refused(error.reason) }
  }

  /// Returns the claims of a bulletin as a vector states them.
  private func read(_ bytes: [UInt8]) throws(Refusal) -> JSONValue {
    guard Bulletin.isSealed(bytes.span) else { return try read(signed: bytes.span, sealedTo: nil) }
    var opener = TokenOpener()
    var cryptography = OpenSSLCryptography()
    var key: P256PrivateKey
    do throws(CryptographyFailure) { key = try parties.deviceKey() } catch { throw Refusal(reason: "no device key") }
    do throws(TokenFault) {
      try opener.decryptCOSE(bytes.span, key: &key, keyID: parties.deviceKeyID, using: &cryptography)
    } catch { throw Refusal(reason: "seal: \(error)") }
    return try read(signed: opener.plaintext.bytes, sealedTo: parties.deviceID)
  }

  private func read(signed bytes: Span<UInt8>, sealedTo device: DeviceID?) throws(Refusal) -> JSONValue {
    let bulletin: Bulletin
    do throws(EncodingFault) { bulletin = try Bulletin(bytes, sealedTo: device) } catch {
      throw Refusal(reason: "bulletin: \(error)")
    }
    guard case .signing(let point)? = parties.trust.trustedIssuer(bulletin.issuer) else {
      throw Refusal(reason: "bulletin: another key")
    }
    let audience = bulletin.claims.audience
    guard audiences.contains(audience) else { throw Refusal(reason: "bulletin: another audience") }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try bulletin.verified(by: point, using: &cryptography).claims.json } catch {
      throw Refusal(reason: "bulletin: signature")
    }
  }
}

extension BulletinClaims {
  /// The claims as the vectors state them, those that are there.
  fileprivate var json: JSONValue {
    var members: [(String, JSONValue)] = [
      ("number", .integer(number)), ("predecessor", .integer(predecessor)), ("issuedAt", .integer(issuedAt)),
      ("audience", .string(hexadecimal(audience))),
    ]
    func add<Entry>(_ name: String, _ entries: borrowing BulletinEntries<Entry>, _ json: (Entry) -> JSONValue) {
      guard entries.count > 0 else { return }
      var elements: [JSONValue] = []
      entries.forEach { elements.append(json($0)) }
      members.append((name, .array(elements)))
    }
    add("revoked", revoked) { .array([.string(hexadecimal($0.tokenID)), .integer($0.until)]) }
    if let generation { members.append(("generation", .integer(generation))) }
    add("versions", versions) { least in
      let version = least.version
      return .array(
        [.string(least.subject.description)] + [version.major, version.minor, version.patch].map { .integer($0) })
    }
    add("introduced", introduced) { key in
      .array([
        .string(hexadecimal(key.point.x)), .string(hexadecimal(key.point.y)), .integer(key.from), .integer(key.until),
      ])
    }
    add("ended", ended) { .string(hexadecimal($0.keyID)) }
    add("users", users) { .array([.string($0.user.description), $0.until.map { .integer($0) } ?? .null]) }
    return .object(members)
  }
}

/// The vectors `BulletinMessage` and `AuditMail`: messages that a prover sends between rounds, about bulletins or the audit log. Source:
/// docs/couriers.md, Delivery in a session.
struct MailMessageVectors: ReplayableGroup {
  private let isAboutBulletins: Bool

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    isAboutBulletins = try group.member("type").text() == "BulletinMessage"
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    var written: [UInt8] = []
    do throws(EncodingFault) {
      guard let mail = try MailMessage(message.span), (mail.kind == .bulletin || mail.kind == .list) == isAboutBulletins
      else { return .refused("another message") }
      MailMessage.encode(mail.kind, mail.bytes, into: &written)
    } catch { return .refused("\(error)") }
    return written == message ? .accepted : .differs("message, written again,")
  }
}

/// The vectors `BulletinAnswer`: answers of a device. Source: docs/couriers.md, Delivery in a session.
struct BulletinAnswerVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    var written: [UInt8] = []
    do throws(EncodingFault) { try BulletinAnswer(message.span).encode(into: &written) } catch {
      return .refused("\(error)")
    }
    return written == message ? .accepted : .differs("message, written again,")
  }
}

/// The vectors `BulletinState`: lists, and the states of lists. Source: docs/couriers.md, Numbers.
struct BulletinStateVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let (list, expected) = (try test.bytes("list"), try test.bytes("state"))
    // A list comes only in an answer: [8, 0, list].
    let answer = [0x83, 0x08, 0x00] + list
    let rows: BulletinList?
    do throws(EncodingFault) { rows = try BulletinAnswer(answer.span).list } catch { return .refused("\(error)") }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      guard let state = try rows?.state(using: &cryptography) else { return .refused("no list") }
      return array(state.bytes) == expected ? .accepted : .refused("another state")
    } catch { return .refused("the hash failed") }
  }
}

/// The vectors `BulletinGroup`: names of groups, and their ids. Source: docs/couriers.md, Claims.
struct BulletinGroupVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let name = try test.node.member("name").text()
    let expected: AudienceID = try test.node.member("audience").fixed()
    guard let audience = audienceID(ofGroup: name) else { return .refused("no name of a group") }
    return audience == expected ? .accepted : .refused("another group")
  }
}

/// Returns the id of a group; nil for a text that is no name of a group.
private func audienceID(ofGroup text: String) -> AudienceID? {
  guard let name = BoundedText<32>(text), !name.isEmpty else { return nil }
  var cryptography = OpenSSLCryptography()
  do throws(CryptographyFailure) { return try audience(ofGroup: name, using: &cryptography) } catch { return nil }
}
