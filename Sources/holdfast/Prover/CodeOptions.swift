import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The options for a user's codes with a command. The codes come from files, standard input or a prompt, never from
/// arguments.
struct CodeOptions: ParsableArguments {
  @Option(help: "The user whose codes are given; at most 32 bytes.")
  var user: String?

  @Option(
    help: "A file with a one-time password; - reads a line from standard input, or prompts on a terminal.",
    completion: .file())
  var otp: String?

  @Option(
    help: "A file with a seal; - reads a line from standard input, or prompts on a terminal.", completion: .file())
  var seal: String?

  /// Makes the request with its codes. The one-time password is read before the seal. With a seal, the texts have the
  /// normalised form that `seal` uses.
  ///
  /// - Parameter known: the user whose one-time password will be added; nil if none will.
  func request(command: String, parameters: [String], user known: String? = nil) throws(Failure) -> Request {
    guard otp != nil || seal != nil else {
      guard user == nil || known != nil else { throw Failure(.usage, "--user requires --otp or --seal") }
      return try Request(command: command, parameters: parameters)
    }
    guard let user = user ?? known else { throw Failure(.usage, "--otp and --seal require --user") }
    var request =
      try seal == nil
      ? Request(command: command, parameters: parameters) : sealed(command: command, parameters: parameters)
    if let otp { request.codes[.otp] = try Self.code(of: user, in: otp, "--otp", question: "one-time password") }
    if let seal { request.codes[.seal] = try Self.code(of: user, in: seal, "--seal", question: "seal") }
    return request
  }

  /// Reads a user's code from the file that an option names.
  static func code(
    of user: String, in path: String, _ option: String, question: String
  ) throws(Failure) -> UserCode {
    UserCode(user: try BoundedText<32>(userArgument: user), code: try code(from: path, of: option, question: question))
  }

  private func sealed(command: String, parameters: [String]) throws(Failure) -> Request {
    let text: SealRequest
    do throws(SealFault) {
      text = try SealRequest(command: command, parameters: parameters, fieldByteLimit: 64)
    } catch { throw Failure(error, fieldByteLimit: 64) }
    return try Request(command: text.command, parameters: text.parameters)
  }

  /// Reads a code of 1 to 16 digits. Spaces between the digits are ignored.
  private static func code(
    from path: String, of option: String, question: String
  ) throws(Failure) -> BoundedText<16> {
    guard !path.isCode else {
      throw Failure(secretGivenTo: option, hint: "give \(option) a file, or - to type the code when asked")
    }
    let line = try SecretInput.lineOrAnswer(path, of: option, question: question, limit: 64)
    var digits = ByteBuffer<16>()
    let bytes = line.bytes
    for index in bytes.indices where bytes[index] != 0x20 {
      guard (0x30...0x39).contains(bytes[index]) else { throw Failure(.malformed, "a code consists of digits") }
      do throws(EncodingFault) { try digits.append(bytes[index]) } catch {
        throw Failure(.malformed, "a code has at most 16 digits")
      }
    }
    guard digits.count > 0, let code = BoundedText<16>(digits.bytes) else {
      throw Failure(.malformed, "the code is missing", hint: "a code is one line of digits")
    }
    return code
  }
}

extension String {
  /// Whether the text is a code or a PIN instead of the name of a file with one.
  var isCode: Bool {
    let digits = utf8.count { (0x30...0x39).contains($0) }
    return digits >= 4 && utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x20 || $0 == 0x2d }
  }
}

extension BoundedText where capacity == 32 {
  /// Parses a user's name, as authenticators accept it: 1 to 32 bytes without control characters.
  package init(userArgument text: String) throws(Failure) {
    guard let name = BoundedText<32>(text), !name.isEmpty,
      haveSameBytes(text, text.printable)
    else {
      throw Failure(
        .usage, "a user's name must have 1 to 32 bytes, without control characters or changes of text direction")
    }
    self = name
  }
}
