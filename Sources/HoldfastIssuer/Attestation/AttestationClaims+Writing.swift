import HoldfastCore
import HoldfastJSON

extension AttestationClaims {
  /// Writes the claims as a JWT claims set; binary claims are padded standard base64.
  ///
  /// Source: RFC 7519 §4.
  borrowing func appendJSON<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
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

private func paddedBase64(_ bytes: Span<UInt8>) -> String {
  var text: [UInt8] = []
  text.append(asPaddedBase64: bytes)
  return String(decoding: text, as: UTF8.self)
}
