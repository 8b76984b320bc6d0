import HoldfastCore
import HoldfastOpenSSL
@_spi(_Unicode) import Swift

/// The check that the peer is the genuine device, before the user types anything into it.
///
/// Source: RFC 6287 §7.2 and §7.3: the server's half of a mutual challenge and response.
extension Authenticator {
  /// Creates a challenge for the device and stores it in place of the previous one.
  ///
  /// `record` has the purpose `host`. An unconfirmed record is accepted too, because the answer shows whether the
  /// device has it.
  ///
  /// - Throws: `unsuitableMethod` for a record of another purpose, `unknownRecord` if it was removed meanwhile, `interrupted`;
  ///   `busy`, also if it was replaced; `diskFull`; `failed`, also if the random source fails. The previous challenge then stays.
  public func challengeDevice<Random: RandomSource & ~Copyable>(
    _ record: Record, random: inout Random
  ) throws(AuthenticatorFault) -> DeviceChallenge {
    guard record.purpose == .host else { throw .unsuitableMethod }
    let challenge = try DeviceChallenge(random: &random)
    try tables.transaction { () throws(AuthenticatorFault) in
      var stored = try stored(record)
      guard stored.secret != nil else { throw .interrupted }
      stored.clientChallenge = challenge.digits
      try tables.save(stored)
    }
    return challenge
  }

  /// Returns whether a host code answers the last challenge together with the device's challenge. Each challenge serves
  /// one check, whether it succeeds or not.
  ///
  /// `code` has as many decimal digits as the record's suite states. Any other code is `badQuestion` and does not use
  /// up the challenge. Timing: the comparison does not reveal where the codes differ.
  ///
  /// - Throws: `noChallenge` before ``challengeDevice(_:random:)`` and after a check, `unsuitableMethod`, `badQuestion`,
  ///   `unknownRecord`, `interrupted`; `busy`, `diskFull`, `failed`.
  public func checkHostCode(
    _ code: String, deviceChallenge: DeviceChallenge, of record: Record
  ) throws(AuthenticatorFault) -> Bool {
    let (given, suite) = try record.hostCode(code)
    let (secret, challenge) = try tables.transaction { () throws(AuthenticatorFault) -> (BlindedSecret, String) in
      var stored = try stored(record)
      guard let secret = stored.secret else { throw .interrupted }
      guard let challenge = stored.clientChallenge else { throw .noChallenge }
      stored.clientChallenge = nil
      try tables.save(stored)
      return (secret, challenge)
    }
    return try isHostCode(given, of: suite, secret, over: challenge + deviceChallenge.digits)
  }

  /// Returns whether `given` is the host code over both challenges.
  func isHostCode(
    _ given: [UInt8], of suite: OCRASuite, _ secret: BlindedSecret, over challenges: String
  ) throws(AuthenticatorFault) -> Bool {
    let key = try secret.unblinded(with: ProtectionSecret.none)
    let text = Array(challenges.utf8)
    guard let question = OCRAQuestion(text.span, for: suite) else { throw .corrupt }
    do throws(CryptographyFailure) {
      let expected = try answer(suite, key: key.bytes, question: question, moment: CodeMoment())
      return constantTimeEqual(expected.bytes, given.span)
    } catch { throw .failed }
  }
}

extension Authenticator {
  /// Makes a seal over a command and its parameters. A counter that the seal uses is recorded before the seal is
  /// returned.
  ///
  /// - Parameters:
  ///   - request: The command, checked against the record's ``Record/sealFieldByteLimit``.
  ///   - record: A record of purpose `seal`.
  ///   - challenge: The device's challenge, only for a suite with neither counter nor time.
  ///   - protector: The input that the record's protection requires. A wrong PIN yields a wrong seal.
  ///   - clock: The clock by which a time-based seal is made.
  /// - Throws: `badQuestion` if a challenge is missing or superfluous; otherwise the errors of
  ///   ``code(for:with:challenge:clock:)``.
  public func seal<Time: Clock & ~Copyable>(
    _ request: SealRequest, for record: Record, challenge: DeviceChallenge? = nil,
    with protector: borrowing ProtectionSecret, clock: borrowing Time
  ) throws(AuthenticatorFault) -> Code {
    try answer(over: try digest(of: request, isRefusal: false), record, challenge, protector, clock)
  }

  /// Makes the refusal of a command and its parameters, with which the user rejects it. No refusal is a seal, nor the other way
  /// round. Like a seal, it uses up its counter or time step.
  ///
  /// Source: docs/protocol.md, Seal requests. Parameters and errors are those of ``seal(_:for:challenge:with:clock:)``.
  public func refusal<Time: Clock & ~Copyable>(
    of request: SealRequest, for record: Record, challenge: DeviceChallenge? = nil,
    with protector: borrowing ProtectionSecret, clock: borrowing Time
  ) throws(AuthenticatorFault) -> Code {
    try answer(over: try digest(of: request, isRefusal: true), record, challenge, protector, clock)
  }

  private func answer<Time: Clock & ~Copyable>(
    over digest: FixedBytes<64>, _ record: Record, _ challenge: DeviceChallenge?,
    _ protector: borrowing ProtectionSecret, _ clock: borrowing Time
  ) throws(AuthenticatorFault) -> Code {
    guard record.purpose == .seal, case .ocra(let suite) = record.method else { throw .unsuitableMethod }
    guard record.needsChallenge == (challenge != nil) else { throw .badQuestion }
    var text = challenge.map { Array($0.digits.utf8) } ?? []
    text.append(digest.bytes)
    guard let question = OCRAQuestion(text.span, for: suite) else { throw .failed }
    let codes = try use(record, count: 1, with: protector, clock: clock) { (key, moment) throws(AuthenticatorFault) in
      do throws(CryptographyFailure) {
        return try answer(suite, key: key, question: question, moment: moment)
      } catch { throw .failed }
    }
    return codes[0]
  }

  private func digest(of request: SealRequest, isRefusal: Bool) throws(AuthenticatorFault) -> FixedBytes<64> {
    guard let command = BoundedText<32>(request.command) else { throw .failed }
    let count = request.parameters.count
    func parameter(_ index: Int) -> BoundedText<64> { BoundedText<64>(request.parameters[index]) ?? BoundedText() }
    do throws(CryptographyFailure) {
      return isRefusal
        ? try refusalQuestion(command: command, parameterCount: count, parameter: parameter, using: &cryptography)
        : try sealQuestion(command: command, parameterCount: count, parameter: parameter, using: &cryptography)
    } catch { throw .failed }
  }
}

extension Record {
  /// Returns the digits of a host code, and the suite that makes it.
  ///
  /// - Throws: `unsuitableMethod`, `badQuestion`.
  func hostCode(_ code: String) throws(AuthenticatorFault) -> (digits: [UInt8], suite: OCRASuite) {
    guard purpose == .host, case .ocra(let suite) = method else { throw .unsuitableMethod }
    let given = Array(code.utf8)
    guard given.count == suite.length?.digits, given.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw .badQuestion
    }
    return (given, suite)
  }

  /// Whether the record's seals need a challenge of the device, because neither a counter nor the time makes each seal
  /// fresh.
  public var needsChallenge: Bool {
    purpose == .seal && !method.isCounted && method.timeStepSeconds == nil
  }
}

/// A challenge to or from a device: 16 hexadecimal digits.
public struct DeviceChallenge: Sendable, Equatable {
  /// The digits, in lower case.
  public let digits: String

  /// Creates a random challenge.
  ///
  /// - Throws: `failed` if the random source fails.
  package init<Random: RandomSource & ~Copyable>(random: inout Random) throws(AuthenticatorFault) {
    let bytes: FixedBytes<8>
    do throws(RandomFailure) { bytes = try random.fixedBytes() } catch { throw .failed }
    digits = (0..<8).map { String(UInt16(bytes[$0]) | 0x100, radix: 16).dropFirst() }.joined()
  }

  /// Creates a challenge from 16 hexadecimal digits in either case; nil for anything else.
  public init?(_ text: String) {
    guard text.utf8.count == 16 else { return nil }
    var digits = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x61...0x66: digits.unicodeScalars.append(Unicode.Scalar(byte))
      case 0x41...0x46: digits.unicodeScalars.append(Unicode.Scalar(byte + 0x20))
      default: return nil
      }
    }
    self.digits = digits
  }
}

/// A command and its parameters in the form that is sealed: normalised, bounded, and without control characters.
public struct SealRequest: Sendable, Equatable {
  /// The command, 1 to 32 UTF-8 bytes, normalised.
  public let command: String
  /// The parameters, at most 8, each normalised.
  public let parameters: [String]

  /// The largest number of parameters.
  package static let maximumParameterCount = 8
  /// The largest number of characters in a parameter, unless the record sets a limit in bytes.
  package static let usualCharacterCount = 16

  /// Normalises the texts to NFC and checks them. `fieldByteLimit` is the record's limit: the largest length of a
  /// parameter in UTF-8 bytes, of which 64 count at most, or nil for 16 characters of at most 64 bytes.
  public init(command: String, parameters: [String], fieldByteLimit: Int? = nil) throws(SealFault) {
    self.command = command.normalised
    if let fault = self.command.fieldFault(byteLimit: 32) { throw .command(fault) }
    guard parameters.count <= Self.maximumParameterCount else { throw .tooManyParameters }
    self.parameters = parameters.map(\.normalised)
    for (index, parameter) in self.parameters.enumerated() {
      if let fault = parameter.fieldFault(byteLimit: min(fieldByteLimit ?? 64, 64)) {
        throw .parameter(index + 1, fault)
      }
      guard fieldByteLimit != nil || parameter.unicodeScalars.count <= Self.usualCharacterCount else {
        throw .parameter(index + 1, .tooLong)
      }
    }
  }
}

/// The reasons why a command cannot be sealed.
public enum SealFault: Error, Sendable, Equatable {
  case command(SealFieldFault)
  case tooManyParameters
  /// A parameter, counted from 1, is not valid.
  case parameter(Int, SealFieldFault)
}

/// The reasons why a field is not valid.
public enum SealFieldFault: Sendable, Equatable {
  case empty
  case tooLong
  /// The field has control characters, invisible characters, or characters that change the direction of text. Two
  /// different requests could look the same.
  case controlCharacter
}

extension String {
  /// The text in Normalization Form C. Source: UAX #15.
  fileprivate var normalised: String {
    var scalars = UnicodeScalarView()
    for scalar in _nfc { scalars.append(scalar) }
    return String(scalars)
  }

  fileprivate func fieldFault(byteLimit: Int) -> SealFieldFault? {
    if isEmpty { return .empty }
    if unicodeScalars.contains(where: { $0.isControl || $0.properties.isDefaultIgnorableCodePoint }) {
      return .controlCharacter
    }
    return utf8.count > byteLimit ? .tooLong : nil
  }
}
