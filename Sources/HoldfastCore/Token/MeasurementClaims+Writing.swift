extension MeasurementClaims {
  /// Writes the claims as a CWT claims set, deterministically.
  ///
  /// Source: RFC 8392 §3; labels from -75001 on are Holdfast's own.
  package borrowing func appendCBOR<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    var count = 10
    if maximumUses != nil { count += 1 }
    if commands != nil { count += 1 }
    if version != .zero { count += 1 }
    if user != nil { count += 1 }
    try sink.appendCBOR(map: count)
    try sink.appendCBOR(integer: ClaimLabel.issuer)
    try sink.appendCBOR(text: issuer.bytes)
    try sink.appendCBOR(integer: ClaimLabel.subject)
    try sink.appendCBOR(text: subject.bytes)
    try sink.appendCBOR(integer: ClaimLabel.audience)
    var audienceText = ByteBuffer<22>()
    // 16 bytes are 22 characters.
    try? audienceText.append(asBase64URL: audience.bytes)
    try sink.appendCBOR(text: audienceText.bytes)
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
      try sink.appendCBOR(unsigned: version.major)
      try sink.appendCBOR(unsigned: version.minor)
      try sink.appendCBOR(unsigned: version.patch)
    }
    if let user {
      try sink.appendCBOR(integer: ClaimLabel.user)
      try sink.appendCBOR(text: user.bytes)
    }
  }
}
