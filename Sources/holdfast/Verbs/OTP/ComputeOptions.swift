import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct OTPCompute: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compute", abstract: "Compute a code from explicit inputs, to compare implementations.",
    discussion: "The command stores neither the secret nor the counter.",
    examples: [
      "holdfast otp compute totp --secret-file secret.hex"
    ],
    subcommands: [OTPComputeHOTP.self, OTPComputeTOTP.self, OTPComputeOCRA.self])
}

extension Verb {
  /// Prints a code, by itself or with the further members of `--json`.
  func printCode(_ code: String, _ members: [(String, JSONValue)]) {
    guard output.json else { return Console.result(code) }
    Console.result(.object([("code", .string(code))] + members))
  }

  /// Warns of a secret that is shorter than the hash requires, and therefore easier to guess.
  func warn(ofShort secret: borrowing SecretBytes, for hash: OATHHash) {
    guard secret.count < hash.byteCount else { return }
    Console.warning(
      "the secret has \(secret.count) bytes; RFC 4226 requires at least 16, and \(hash.name) can use \(hash.byteCount)")
  }
}

/// Parses a decimal number in `range`, which consists only of digits.
func number(_ text: String, of option: String, in range: ClosedRange<UInt64>) throws(Failure) -> UInt64 {
  guard let number = decimal(text), range.contains(number) else {
    throw Failure(.usage, "\(option) must be from \(range.lowerBound) to \(range.upperBound)")
  }
  return number
}

/// Parses a number in decimal digits; returns nil for signs, spaces and numbers of more than 64 bits.
func decimal(_ text: String) -> UInt64? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
  return UInt64(text)
}

/// The encodings of a secret in a file.
enum SecretFormat: String, CaseIterable, ExpressibleByArgument {
  case hex, base32, raw
}

extension SecretFormat {
  /// Reads the secret, at least one byte, from a file that `option` names, or from standard input for `-`.
  func read(_ path: String, of option: String) throws(Failure) -> SecretBytes {
    let name = SecretInput.name(path)
    let secret: SecretBytes
    switch self {
    case .raw: secret = try SecretInput.read(path, of: option, limit: 65_536)
    case .hex:
      let text = try SecretInput.readLine(path, of: option, limit: 65_536)
      do throws(Base16Fault) { secret = try Base16.decode(text.bytes) } catch {
        throw Failure(.malformed, "\(name) is not pairs of hex digits", hint: "is it --format base32 or --format raw?")
      }
    case .base32:
      let text = try SecretInput.readLine(path, of: option, limit: 65_536)
      do throws(Base32Fault) { secret = try Base32.decode(text.bytes) } catch { throw Failure(error, in: name) }
    }
    guard secret.count > 0 else { throw Failure(.malformed, "the secret in \(name) is empty") }
    return secret
  }
}

struct ComputeSecretOptions: ParsableArguments {
  @Option(help: "A file with the secret, or - for standard input.", completion: .file())
  var secretFile: String

  @Option(help: "The format of the secret: hex, base32 or raw.")
  var format: SecretFormat = .hex

  func read() throws(Failure) -> SecretBytes { try format.read(secretFile, of: "--secret-file") }
}

/// The names of the hashes in options. The parser shows raw values as defaults, and those of ``OATHHash`` are numbers.
enum HashName: String, CaseIterable, ExpressibleByArgument {
  case sha1 = "SHA1"
  case sha256 = "SHA256"
  case sha512 = "SHA512"

  var hash: OATHHash {
    switch self {
    case .sha1: .sha1
    case .sha256: .sha256
    case .sha512: .sha512
    }
  }
}

struct ComputeCodeOptions: ParsableArguments {
  @Option(help: "The hash: SHA1, SHA256 or SHA512.")
  var algorithm: HashName = .sha1

  @Option(parsing: .unconditional, help: "The number of digits, 4 to 10; 0 for the whole HMAC in hex.")
  var digits: String = "6"

  package func checked() throws(Failure) -> CodeComputation {
    let digits = Int(try number(digits, of: "--digits", in: 0...10))
    guard digits == 0 || CodeLength(digits) != nil else {
      throw Failure(.usage, "--digits must be from 4 to 10, or 0 for the whole HMAC")
    }
    return CodeComputation(hash: algorithm.hash, length: CodeLength(digits))
  }
}

struct ComputeTimeOptions: ParsableArguments {
  @Option(parsing: .unconditional, help: "The time in Unix seconds; by default, the current time.")
  var time: String?

  /// Returns the time, in Unix seconds. A given time may be any (RFC 6238 itself uses values up to the year 2603); the
  /// clock's must be from 1970 to 2106.
  func unixSeconds() throws(Failure) -> UInt64 {
    if let time {
      guard let seconds = decimal(time), seconds <= maximumInteger else {
        throw Failure(.usage, "--time must be from 0, in 1970, to \(maximumInteger)")
      }
      return seconds
    }
    guard let now = SystemClock().unixSeconds(), now <= UInt64(UInt32.max) else {
      throw Failure(.fault, "the clock is before 1970 or after 2106", hint: "set the clock, or add --time")
    }
    return now
  }
}

/// The computation of a code from a counter or a time step.
struct CodeComputation {
  let hash: OATHHash
  /// The length of the code; nil for the whole HMAC.
  let length: CodeLength?

  func compute(counter: UInt64, key: borrowing SecretBytes) throws(Failure) -> String {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      if let length {
        return try HOTP.code(counter: counter, key: key.bytes, hash: hash, length: length, using: &cryptography)
          .description
      }
      return hexadecimal(try HOTP.untruncated(counter: counter, key: key.bytes, hash: hash, using: &cryptography))
    } catch { throw Failure(.fault, "libcrypto failed") }
  }
}
