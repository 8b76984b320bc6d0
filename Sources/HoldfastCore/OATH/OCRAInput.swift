/// What an OCRA code is made from, apart from its suite and its key. Which of these there must be, the suite says.
///
/// Source: RFC 6287 §5.1.
public struct OCRAInput: ~Escapable {
  /// `C`.
  public let counter: UInt64?
  /// `Q`: 128 bytes.
  public let question: Span<UInt8>
  /// `P`: the PIN as it is typed, hashed when the code is made; any number of bytes.
  public let pin: Span<UInt8>?
  /// `S`: at most as many bytes as the suite says; shorter ones get zeros in front, as the RFC's reference does.
  public let session: Span<UInt8>?
  /// `T`: the number of time steps since 1970, see ``TOTP/timeStep(at:periodSeconds:)``.
  public let timeStep: UInt64?

  @_lifetime(borrow question, copy pin, copy session)
  public init(
    counter: UInt64? = nil, question: borrowing OCRAQuestion, pin: Span<UInt8>? = nil, session: Span<UInt8>? = nil,
    timeStep: UInt64? = nil
  ) {
    self.init(counter: counter, questionBytes: question.bytes.bytes, pin: pin, session: session, timeStep: timeStep)
  }

  @_lifetime(copy questionBytes, copy pin, copy session)
  init(
    counter: UInt64?, questionBytes: Span<UInt8>, pin: Span<UInt8>? = nil, session: Span<UInt8>? = nil,
    timeStep: UInt64?
  ) {
    self.counter = counter
    question = questionBytes
    self.pin = pin
    self.session = session
    self.timeStep = timeStep
  }
}
