import HoldfastCore
import HoldfastJSON

extension MeasurementClaims {
  /// Writes the claims as a JWT claims set.
  ///
  /// Source: RFC 7519 §4. Base64 of the secrets is made without tables.
  borrowing func appendJSON<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    let members: [(String, JSONValue)] = [
      ("iss", .string(issuer.description)), ("sub", .string(subject.description)),
      ("aud", .string(base64URL(audience.bytes))), ("exp", .integer(expires)), ("iat", .integer(issuedAt)),
      ("jti", .string(base64URL(tokenID.bytes))), ("gen", .integer(generation)),
    ]
    let text = JSONValue.object(members + optionalMembers()).compact()
    try sink.append(text.span.extracting(droppingLast: 1))
    try sink.append(#","imh":""#)
    try integrity.withBytes { (bytes) throws(Sink.Failure) in try sink.append(asPaddedBase64: bytes) }
    try sink.append(#"","dmh":""#)
    try device.withBytes { (bytes) throws(Sink.Failure) in try sink.append(asPaddedBase64: bytes) }
    try sink.append(#"","mpk":""#)
    try proofKey.withBytes { (bytes) throws(Sink.Failure) in try sink.append(asPaddedBase64: bytes) }
    try sink.append(#""}"#)
  }

  private borrowing func optionalMembers() -> [(String, JSONValue)] {
    var members: [(String, JSONValue)] = []
    if let maximumUses { members.append(("max", .integer(maximumUses))) }
    switch commands {
    case .some(let commands):
      members.append(("cmd", .array((0..<commands.count).map { .string(commands[$0].description) })))
    case .none: break
    }
    if version != .zero {
      members.append(("ver", .array([version.major, version.minor, version.patch].map { .integer($0) })))
    }
    if let user { members.append(("usr", .string(user.description))) }
    return members
  }
}
