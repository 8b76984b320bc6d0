import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

struct OTPComputeHOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "hotp", abstract: "Compute the code for a counter (RFC 4226).",
    examples: [
      "holdfast otp compute hotp --secret-file secret.hex --counter 0"
    ])

  @OptionGroup var secret: ComputeSecretOptions
  @OptionGroup var code: ComputeCodeOptions

  @Option(parsing: .unconditional, help: "The counter, 0 to 18446744073709551615.")
  var counter: String

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let code = try code.checked()
    let counter = try number(counter, of: "--counter", in: 0...UInt64.max)
    let key = try secret.read()
    warn(ofShort: key, for: code.hash)
    printCode(try code.compute(counter: counter, key: key), [])
  }
}

struct OTPComputeTOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "totp", abstract: "Compute the code for a time (RFC 6238).",
    examples: [
      "holdfast otp compute totp --secret-file secret.hex --time 59 --digits 8",
      "holdfast otp compute totp --secret-file - --format base32",
    ])

  @OptionGroup var secret: ComputeSecretOptions
  @OptionGroup var code: ComputeCodeOptions
  @OptionGroup var time: ComputeTimeOptions

  @Option(parsing: .unconditional, help: "The length of a time step in seconds, 1 to 86400.")
  var period: String = "30"

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let code = try code.checked()
    let period = try number(period, of: "--period", in: 1...CodeMethod.maximumPeriodSeconds)
    let step = TOTP.timeStep(at: try time.unixSeconds(), periodSeconds: period)
    let key = try secret.read()
    warn(ofShort: key, for: code.hash)
    printCode(try code.compute(counter: step, key: key), [("time_step", .integer(step))])
  }
}

struct OTPComputeOCRA: Verb {
  static let configuration = CommandConfiguration(
    commandName: "ocra", abstract: "Compute the answer to a question, or a signature over it (RFC 6287).",
    discussion: "The suite determines which inputs are required; the command refuses others.",
    examples: [
      """
      holdfast otp compute ocra --secret-file secret.hex \\
      --suite OCRA-1:HOTP-SHA256-8:QH64 --question 00112233
      """
    ])

  @OptionGroup var secret: ComputeSecretOptions

  @Option(help: "The suite, such as OCRA-1:HOTP-SHA256-8:QH64-T1M.")
  var suite: String

  @Option(parsing: .unconditional, help: "The question; for a mutual answer, both questions, one after the other.")
  var question: String

  @Option(parsing: .unconditional, help: "The counter, for a suite with C.")
  var counter: String?

  @Option(
    parsing: .unconditional, help: "A test PIN, for a suite with P; other processes can read it in the process list.")
  var pin: String?

  @Option(help: "A file with the PIN, or - for standard input.", completion: .file())
  var pinFile: String?

  @Option(parsing: .unconditional, help: "The session information in hex, for a suite with S; zeros are prepended.")
  var session: String?

  @OptionGroup var time: ComputeTimeOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard let suite = OCRASuite(suite) else { throw Failure(badSuite: suite) }
    guard let question = OCRAQuestion(question, for: suite) else { throw Failure(badQuestionFor: suite) }
    var counter: UInt64?
    if let text = self.counter { counter = try number(text, of: "--counter", in: 0...UInt64.max) }
    let session = try sessionBytes()
    let step = try timeStep(suite)
    let pin = try pinBytes()
    let key = try secret.read()
    warn(ofShort: key, for: suite.hash)
    let input = OCRAInput(
      counter: counter, question: question, pin: pin.count > 0 ? pin.bytes : nil, session: session?.span, timeStep: step
    )
    var members: [(String, JSONValue)] = []
    if let step { members.append(("time_step", .integer(step))) }
    printCode(try answer(suite, key, input), members)
  }

  private func answer(
    _ suite: OCRASuite, _ key: borrowing SecretBytes, _ input: borrowing OCRAInput
  ) throws(Failure) -> String {
    var cryptography = OpenSSLCryptography()
    do throws(OCRAFault) {
      guard suite.length == nil else {
        return try OCRA.code(suite: suite, key: key.bytes, input: input, using: &cryptography).description
      }
      return hexadecimal(try OCRA.untruncated(suite: suite, key: key.bytes, input: input, using: &cryptography))
    } catch { throw Failure(error) }
  }

  private func sessionBytes() throws(Failure) -> [UInt8]? {
    guard let session else { return nil }
    do throws(Base16Fault) {
      let decoded = try Base16.decode(Array(session.utf8).span)
      return (0..<decoded.count).map { decoded.bytes[$0] }
    } catch { throw Failure(.usage, "--session must be pairs of hex digits") }
  }

  private func timeStep(_ suite: OCRASuite) throws(Failure) -> UInt64? {
    guard let period = suite.timeStepSeconds else {
      guard time.time == nil else { throw Failure(OCRAFault.unexpectedInput(.time)) }
      return nil
    }
    return TOTP.timeStep(at: try time.unixSeconds(), periodSeconds: period)
  }

  /// Returns the bytes of the PIN; none if there is no PIN.
  private func pinBytes() throws(Failure) -> SecretBytes {
    guard pin == nil || pinFile == nil else { throw Failure(.usage, "--pin and --pin-file cannot be combined") }
    guard pinFile != "-" || secret.secretFile != "-" else {
      throw Failure(.usage, "standard input cannot provide both the secret and the PIN")
    }
    if let pin {
      guard !pin.isEmpty else { throw Failure(.usage, "--pin is empty") }
      return SecretBytes(copying: Array(pin.utf8).span)
    }
    guard let pinFile else { return SecretBytes(zeros: 0) }
    let bytes = try SecretInput.readLine(pinFile, of: "--pin-file", limit: 1024)
    guard bytes.count > 0 else { throw Failure(.malformed, "the PIN in \(SecretInput.name(pinFile)) is empty") }
    return bytes
  }
}
