import HoldfastCore
import HoldfastOpenSSL

extension Authenticator {
  /// A seal over a command and its parameters; a counter that it takes is recorded before it is returned.
  ///
  /// - Parameters:
  ///   - request: Checked against the record's ``Record/sealFieldByteLimit``.
  ///   - record: Of purpose `seal`.
  ///   - challenge: The device's, for a suite with neither counter nor time, and for no other.
  ///   - protector: What its protection asks for. A wrong PIN gives a wrong seal.
  /// - Throws: `badQuestion` where a challenge is missing or there must be none; otherwise as
  ///   ``code(for:with:challenge:clock:)``.
  public func seal<Time: Clock & ~Copyable>(
    _ request: SealRequest, for record: Record, challenge: DeviceChallenge? = nil,
    with protector: borrowing ProtectionSecret, clock: borrowing Time
  ) throws(AuthenticatorFault) -> Code {
    guard record.purpose == .seal, case .ocra(let suite) = record.method else { throw .unsuitableMethod }
    guard record.needsChallenge == (challenge != nil) else { throw .badQuestion }
    var text = challenge.map { Array($0.digits.utf8) } ?? []
    text.append(try digest(of: request).bytes)
    guard let question = OCRAQuestion(text.span, for: suite) else { throw .failed }
    let codes = try use(record, count: 1, with: protector, clock: clock) { (key, moment) throws(AuthenticatorFault) in
      do throws(CryptographyFailure) {
        return try answer(suite, key: key, question: question, moment: moment)
      } catch { throw .failed }
    }
    return codes[0]
  }

  private func digest(of request: SealRequest) throws(AuthenticatorFault) -> FixedBytes<64> {
    guard let command = BoundedText<32>(request.command) else { throw .failed }
    do throws(CryptographyFailure) {
      return try sealQuestion(
        command: command, parameterCount: request.parameters.count,
        parameter: { BoundedText<64>(request.parameters[$0]) ?? BoundedText() }, using: &cryptography)
    } catch { throw .failed }
  }
}

extension Record {
  /// Whether its seals take a challenge of the device: nothing else makes each a new one.
  public var needsChallenge: Bool {
    purpose == .seal && !method.isCounted && method.timeStepSeconds == nil
  }
}
