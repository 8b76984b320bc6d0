import HoldfastCore
import HoldfastFormats

/// The claims of an attestation token. The measurements and the proof key are secret.
package struct AttestationClaims: ~Copyable {
  /// The claim `iss`: the attestation service.
  var issuer: BoundedText<64>
  /// The claim `aud`: the API domain of the backend.
  package var audience: BoundedText<255>
  /// The claims `iat` and `exp`, in Unix seconds.
  package var issuedAt: UInt64
  package var expires: UInt64
  /// The claim `did`: an identifier of the prover's host that only the attestation service can derive.
  package var deviceID: HostID
  /// The claim `arc`: the response code for logs.
  package var responseCode: BoundedText<16>
  /// The claim `pay`: the result of ``payloadBinding(_:hash:using:)``.
  package var binding: Digest
  /// The claims `imh` (integrity measurement), `dmh` (device measurement, DM, of the prover's host) and `mpk` (proof
  /// key).
  package var integrity: Secret<32>
  package var device: Secret<32>
  package var proofKey: Secret<16>
  /// The claim `sub`: the approved app; nil if the service does not state it.
  package var subject: BoundedText<64>?
  /// The claim `ver`: the app's version; nil if the service does not state it.
  package var version: AppVersion?

  /// The `typ` header of the JWS.
  static var type: String { "holdfast-at+jwt" }
}

extension AttestationClaims {
  /// Reads a JWT claims set. Unknown claims are ignored, as RFC 7519 §4 requires.
  ///
  /// - Throws: `unexpected` unless it is an attestation with measurements.
  package static func read(_ json: Span<UInt8>) throws(EncodingFault) -> AttestationClaims {
    var reader = try JSONReader(json)
    var object = try reader.beginObject()
    var claims = PartialAttestationClaims()
    while let name = try reader.nextMember(&object) {
      if try claims.readText(name, from: &reader) { continue }
      if try claims.readBytes(name, from: &reader) { continue }
      try reader.skipValue()
    }
    try reader.finish()
    return try claims.complete()
  }
}

/// The claims collected so far; they may come in any order.
private struct PartialAttestationClaims: ~Copyable {
  var issuer: BoundedText<64>?
  var audience: BoundedText<255>?
  var issuedAt, expires: UInt64?
  var deviceID: Secret<16>?
  var responseCode: BoundedText<16>?
  var binding: Secret<32>?
  var integrity, device: Secret<32>?
  var proofKey: Secret<16>?
  var subject: BoundedText<64>?
  var version: AppVersion?

  init() {}

  mutating func readText(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) -> Bool {
    if name.equals("iss") {
      issuer = try boundedText(&reader)
    } else if name.equals("aud") {
      audience = try boundedText(&reader)
    } else if name.equals("iat") {
      issuedAt = try reader.unsigned()
    } else if name.equals("exp") {
      expires = try reader.unsigned()
    } else if name.equals("arc") {
      responseCode = try boundedText(&reader)
    } else if name.equals("sub") {
      subject = try boundedText(&reader)
    } else if name.equals("ver") {
      version = try readVersion(&reader)
    } else {
      return false
    }
    return true
  }

  mutating func readBytes(
    _ name: borrowing JSONString, from reader: inout JSONReader
  ) throws(EncodingFault) -> Bool {
    if name.equals("did") {
      deviceID = try reader.string().paddedBase64Secret()
    } else if name.equals("pay") {
      binding = try reader.string().paddedBase64Secret()
    } else if name.equals("imh") {
      integrity = try reader.string().paddedBase64Secret()
    } else if name.equals("dmh") {
      device = try reader.string().paddedBase64Secret()
    } else if name.equals("mpk") {
      proofKey = try reader.string().paddedBase64Secret()
    } else {
      return false
    }
    return true
  }

  consuming func complete() throws(EncodingFault) -> AttestationClaims {
    guard let issuer, let audience, let issuedAt, let expires, let deviceID, let responseCode, let binding,
      let integrity, let device, let proofKey
    else { throw .unexpected }
    return AttestationClaims(
      issuer: issuer, audience: audience, issuedAt: issuedAt, expires: expires,
      deviceID: deviceID.withBytes { TypedBytes($0) } ?? TypedBytes(), responseCode: responseCode,
      binding: binding.withBytes { TypedBytes($0) } ?? TypedBytes(), integrity: integrity, device: device,
      proofKey: proofKey, subject: subject, version: version)
  }
}

private func boundedText<let capacity: Int>(
  _ reader: inout JSONReader
) throws(EncodingFault) -> BoundedText<capacity> {
  guard let text: BoundedText<capacity> = try reader.string().bounded() else { throw .unexpected }
  return text
}

private func readVersion(_ reader: inout JSONReader) throws(EncodingFault) -> AppVersion {
  var numbers: [UInt64] = []
  var index = try reader.beginArray()
  while try reader.nextElement(&index) {
    guard numbers.count < 3 else { throw .unexpected }
    numbers.append(try reader.unsigned())
  }
  guard numbers.count == 3 else { throw .unexpected }
  return AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
}

extension AttestationClaims {
  /// Writes the claims as a JWT claims set. Binary claims are padded standard base64.
  ///
  /// Source: RFC 7519 §4.
  package borrowing func appendJSON<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    var members: [(String, JSONValue)] = [
      ("iss", .string(issuer.description)), ("iat", .integer(issuedAt)), ("exp", .integer(expires)),
      ("aud", .string(audience.description)), ("did", .string(paddedBase64(deviceID.bytes))),
      ("arc", .string(responseCode.description)), ("pay", .string(paddedBase64(binding.bytes))),
    ]
    if let subject { members.append(("sub", .string(subject.description))) }
    if let version {
      members.append(("ver", .array([version.major, version.minor, version.patch].map { .integer($0) })))
    }
    let text = JSONValue.object(members).compact()
    try sink.append(text.span.extracting(droppingLast: 1))
    try sink.append(#","imh":""#)
    try integrity.withBytes { (bytes) throws(Sink.Failure) in try sink.append(asPaddedBase64: bytes) }
    try sink.append(#"","dmh":""#)
    try device.withBytes { (bytes) throws(Sink.Failure) in try sink.append(asPaddedBase64: bytes) }
    try sink.append(#"","mpk":""#)
    try proofKey.withBytes { (bytes) throws(Sink.Failure) in try sink.append(asPaddedBase64: bytes) }
    try sink.append(#""}"#)
  }
}

/// The id of a prover's host (`did`), 16 bytes: see ``AccountDerivations/deviceID(of:using:)``.
package typealias HostID = TypedBytes<HostIDKind, 16>
/// The kind of ``HostID``.
package enum HostIDKind {}
