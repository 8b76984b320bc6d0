import HoldfastCore
import HoldfastFormats

/// An example of the COSE working group, which is a file of its own: a message with its keys.
///
/// Holdfast's CBOR reader, keys, agreement, key wrap, HMAC and AES-GCM are under test. Source: github.com/cose-wg/Examples; RFC 9052,
/// RFC 9053.
struct COSEExample: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let input = try test.node.member("input")
    let encoded = try test.node.member("output").member("cbor").bytes()
    guard let kind = COSEKind.allCases.first(where: { input.optional($0.memberName) != nil }) else {
      return .skipped("another message of COSE")
    }
    let message = try input.member(kind.memberName)
    if let reason = try reasonToSkip(message, kind) { return .skipped(reason) }
    let plaintext =
      if let hexadecimal = input.optional("plaintext_hex") {
        try hexadecimal.bytes()
      } else {
        Array(try input.member("plaintext").text().utf8)
      }
    let common = try message.optional("external")?.bytes() ?? []
    var parties: [COSEMessage.Party] = []
    for holder in try holders(message, kind) {
      let reason = try reasonToSkip(holder: holder, kind)
      if reason == nil { parties.append(try party(holder, common)) }
    }
    do throws(Refusal) {
      let parsed = try COSEMessage(encoded, kind: kind)
      guard try parsed.open(with: parties) == plaintext else { return .differs("plaintext") }
      return hasCountersignature(input.value) ? .skipped("a countersignature, of a message that opens") : .accepted
    } catch { return .refused(error.reason) }
  }

  /// Returns whether the message, a signer or a recipient is countersigned, which is not checked here. Source: RFC 9338.
  private func hasCountersignature(_ value: JSONValue) -> Bool {
    for (name, member) in value.members ?? [] {
      if name.hasPrefix("countersign") || hasCountersignature(member) { return true }
    }
    return (value.elements ?? []).contains { hasCountersignature($0) }
  }

  private func party(_ holder: VectorNode, _ common: [UInt8]) throws(VectorFault) -> COSEMessage.Party {
    (try key(of: holder), try holder.optional("external")?.bytes() ?? common)
  }

  /// Returns what the message needs and is not read here; nil for nothing.
  private func reasonToSkip(_ message: VectorNode, _ kind: COSEKind) throws(VectorFault) -> String? {
    if message.optional("protected")?.value["crit"] != nil { return "crit" }
    if message.optional("unprotected")?.value["partialIV_hex"] != nil { return "partial IV" }
    if kind != .sign, !hasAlgorithm(message, of: kind.content) {
      return "alg \(algorithmName(of: message) ?? "without a name")"
    }
    var first: String?
    for holder in try holders(message, kind) {
      let reason = try reasonToSkip(holder: holder, kind)
      // A recipient that is not read is ignored next to one that is; every signer is read.
      if reason == nil, kind.form.hasRecipients { return nil }
      if first == nil { first = reason }
    }
    return first
  }

  /// Returns what a signer or recipient, or the holder of a message's only key, needs and is not read here; nil for nothing.
  private func reasonToSkip(holder: VectorNode, _ kind: COSEKind) throws(VectorFault) -> String? {
    guard let key = holder.optional("key") else { return "recipients of a recipient" }
    if key.value["kty"]?.text == "OKP" { return "a key of type OKP" }
    let name = algorithmName(of: holder) ?? "without a name"
    if kind == .sign, !hasAlgorithm(holder, of: .sign1) { return "alg \(name)" }
    guard kind.form.hasRecipients else { return nil }
    guard COSERecipient.algorithmNames.contains(name) else { return "alg \(name) of a recipient" }
    for (name, value) in holder.optional("unsent")?.value.members ?? [] {
      guard name == "compressed" else { return "a context that is not sent" }
      if value.number == 1 { return "compressed point" }
    }
    return nil
  }

  private func hasAlgorithm(_ holder: VectorNode, of kind: COSEKind) -> Bool {
    let name = algorithmName(of: holder)
    return COSEAlgorithm.all.contains { $0.name == name && $0.kind == kind }
  }

  private func algorithmName(of holder: VectorNode) -> String? {
    (holder.optional("protected")?.value["alg"] ?? holder.optional("unprotected")?.value["alg"])?.text
  }

  /// The members that have the message's keys.
  private func holders(_ message: VectorNode, _ kind: COSEKind) throws(VectorFault) -> [VectorNode] {
    if kind == .sign1 { return [message] }
    let list = try message.member(kind == .sign ? "signers" : "recipients")
    let holders = try list.elements()
    guard !holders.isEmpty else { throw list.fault(.wrongValue) }
    return kind.form.hasRecipients || kind == .sign ? holders : [holders[0]]
  }

  /// Returns a key as a JSON Web Key. In some examples, numbers are hexadecimal, and their names say so; some have COSE's name of the
  /// type.
  private func key(of holder: VectorNode) throws(VectorFault) -> JSONValue {
    let key = try holder.member("key")
    var members: [(String, JSONValue)] = []
    for (name, value) in key.value.members ?? [] {
      guard name.hasSuffix("_hex") else {
        members.append((name, name == "kty" && value.text == "EC2" ? .string("EC") : value))
        continue
      }
      let bytes = try key.member(name).bytes()
      members.append((String(name.dropLast(4)), .string(base64URL(bytes.span))))
    }
    return .object(members)
  }
}
