/// A parameter of an accepted round, in the audit log.
package struct AuditedParameter: Sendable, Equatable {
  /// The form of the parameter in the log.
  package enum Content: Sendable, Equatable {
    /// SHA-256 of its bytes.
    case digest(Digest)
    /// The parameter itself, at most 64 bytes, as policy may demand.
    case text(BoundedText<64>)
  }

  /// The number of the round's entry.
  package var round: UInt64
  /// The position of the parameter: 0 to 7.
  package let index: UInt8
  /// The parameter, or its digest.
  package let content: Content

  /// Creates the record of a parameter.
  package init(round: UInt64 = 0, index: UInt8, _ content: Content) {
    (self.round, self.index, self.content) = (round, index, content)
  }

  /// Reads `round, index, SHA-256 / text`.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    round = try reader.unsigned()
    guard let index = UInt8(exactly: try reader.unsigned()), index < 8 else { throw .unexpected }
    self.index = index
    content =
      try reader.nextMajorType() == .bytes ? .digest(try reader.fixedBytes()) : .text(try reader.text())
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: 19)
    try sink.appendCBOR(unsigned: round)
    try sink.appendCBOR(unsigned: UInt64(index))
    switch content {
    case .digest(let digest): try sink.appendCBOR(bytes: digest.bytes)
    case .text(let text): try sink.appendCBOR(text: text.bytes)
    }
  }
}

/// The failure of the command of an accepted round, in the audit log.
package struct AuditedFailure: Sendable, Equatable {
  /// The number of the round's entry.
  package let round: UInt64
  /// The reason of the failure.
  package let reason: ActuatorFailure.Reason
  /// The actuator's words, at most 64 bytes.
  package let text: BoundedText<64>

  /// Creates the record of a failure.
  package init(round: UInt64, _ failure: ActuatorFailure) {
    (self.round, reason, text) = (round, failure.reason, failure.text)
  }

  /// Reads `round, reason, text`.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    round = try reader.unsigned()
    guard let number = UInt8(exactly: try reader.unsigned()), let reason = ActuatorFailure.Reason(rawValue: number)
    else { throw .unexpected }
    self.reason = reason
    text = try reader.text()
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: 20)
    try sink.appendCBOR(unsigned: round)
    try sink.appendCBOR(unsigned: UInt64(reason.rawValue))
    try sink.appendCBOR(text: text.bytes)
  }
}

/// An event that an actuator reported together with the outcome of an accepted round's command, in the audit log.
package struct AuditedActuatorEvent: Sendable, Equatable {
  /// The number of the round's entry.
  package let round: UInt64
  /// The actuator's words, 1 to 64 bytes.
  package let text: BoundedText<64>

  /// Creates the record of an event.
  package init(round: UInt64, _ text: BoundedText<64>) {
    (self.round, self.text) = (round, text)
  }

  /// Reads `round, text`.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    round = try reader.unsigned()
    text = try reader.text()
    guard !text.bytes.isEmpty else { throw .unexpected }
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: 23)
    try sink.appendCBOR(unsigned: round)
    try sink.appendCBOR(text: text.bytes)
  }
}
