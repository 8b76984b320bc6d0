/// Looks for a code that a user gave.
struct CodeSearch: ~Copyable, ~Escapable {
  private let account: CodeAccount
  private let window: CodeWindow
  /// For an OCRA suite: what the code is over.
  private let question: Span<UInt8>?
  private let pin = Pinned()

  @_lifetime(copy question)
  init(account: CodeAccount, window: CodeWindow, question: Span<UInt8>?) {
    self.account = account
    self.window = window
    self.question = question
  }

  /// Where `given` is found. All positions are tried, each compared in constant time.
  borrowing func find<Crypto: Cryptography & ~Copyable>(
    _ given: BoundedText<16>, key: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> CodeMatch {
    var near: UInt64?
    var far: UInt64?
    var position = window.far.lowerBound
    while position < window.far.upperBound {
      let code = try code(at: position, key: key, using: &cryptography)
      if constantTimeEqual(code.bytes, given.bytes) {
        if window.near.contains(position) {
          near = near ?? position
        } else if far == nil || position == account.resynchronisingPosition {
          far = position
        }
      }
      position += 1
    }
    if let near { return .near(position: near) }
    if let far { return .far(position: far) }
    return .none
  }

  private borrowing func code<Crypto: Cryptography & ~Copyable>(
    at position: UInt64, key: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> BoundedText<16> {
    switch account.method {
    case .hotp(let hash, let length), .totp(let hash, let length, _):
      return try HOTP.code(counter: position, key: key, hash: hash, length: length, using: &cryptography)
    case .ocra(let suite):
      guard let question else { throw CryptographyFailure() }
      do throws(OCRAFault) {
        return try OCRA.code(
          suite: suite, key: key,
          input: OCRAInput(
            counter: suite.hasCounter ? position : nil, questionBytes: question,
            timeStep: suite.timeStepSeconds == nil ? nil : position),
          using: &cryptography)
      } catch { throw CryptographyFailure() }
    }
  }
}
