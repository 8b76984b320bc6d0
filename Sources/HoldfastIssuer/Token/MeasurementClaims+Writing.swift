import HoldfastCore
import HoldfastJSON

extension MeasurementClaims {
  /// Writes the claims as a CWT claims set, deterministically.
  ///
  /// Source: RFC 8392 §3; labels from -75001 on are Holdfast's own.
  borrowing func appendCBOR<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    let optional = [maximumUses != nil, commands != nil, version != .zero, user != nil]
    try sink.appendCBOR(map: 10 + optional.filter { $0 }.count)
    try sink.appendCBOR(integer: ClaimLabel.issuer)
    try sink.appendCBOR(text: issuer.bytes)
    try sink.appendCBOR(integer: ClaimLabel.subject)
    try sink.appendCBOR(text: subject.bytes)
    try sink.appendCBOR(integer: ClaimLabel.audience)
    try sink.appendCBOR(text: Array(base64URL(audience.bytes).utf8).span)
    try sink.appendCBOR(integer: ClaimLabel.expires)
    try sink.appendCBOR(unsigned: expires)
    try sink.appendCBOR(integer: ClaimLabel.issuedAt)
    try sink.appendCBOR(unsigned: issuedAt)
    try sink.appendCBOR(integer: ClaimLabel.tokenID)
    try sink.appendCBOR(bytes: tokenID.bytes)
    try sink.appendCBOR(integer: ClaimLabel.integrity)
    try integrity.withBytes { (bytes) throws(Sink.Failure) in try sink.appendCBOR(bytes: bytes) }
    try sink.appendCBOR(integer: ClaimLabel.device)
    try device.withBytes { (bytes) throws(Sink.Failure) in try sink.appendCBOR(bytes: bytes) }
    try sink.appendCBOR(integer: ClaimLabel.proofKey)
    try proofKey.withBytes { (bytes) throws(Sink.Failure) in try sink.appendCBOR(bytes: bytes) }
    try sink.appendCBOR(integer: ClaimLabel.generation)
    try sink.appendCBOR(unsigned: generation)
    try appendOptionalCBOR(to: &sink)
  }

  private borrowing func appendOptionalCBOR<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    if let maximumUses {
      try sink.appendCBOR(integer: ClaimLabel.maximumUses)
      try sink.appendCBOR(unsigned: maximumUses)
    }
    switch commands {
    case .some(let commands):
      try sink.appendCBOR(integer: ClaimLabel.commands)
      try sink.appendCBOR(array: commands.count)
      for index in 0..<commands.count { try sink.appendCBOR(text: commands[index].bytes) }
    case .none: break
    }
    if version != .zero {
      try sink.appendCBOR(integer: ClaimLabel.version)
      try sink.appendCBOR(array: 3)
      for number in [version.major, version.minor, version.patch] { try sink.appendCBOR(unsigned: number) }
    }
    if let user {
      try sink.appendCBOR(integer: ClaimLabel.user)
      try sink.appendCBOR(text: user.bytes)
    }
  }

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
