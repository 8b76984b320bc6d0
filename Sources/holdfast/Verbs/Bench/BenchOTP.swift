import ArgumentParser
import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL

struct BenchOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "Measure how many one-time passwords are computed in a second.",
    discussion: """
      HOTP by HMAC-SHA-1 with six digits, in one thread; each code takes the key's bytes anew and is compared with RFC \
      4226's. Exit status 2 when one differs.
      """,
    examples: [
      "holdfast bench otp --seconds 5"
    ])

  @Option(help: "How long to measure, 1 to 3600 seconds.")
  var seconds: Int = 1

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard (1...3600).contains(seconds) else { throw Failure(.usage, "--seconds is from 1 to 3600") }
    let expected = Array(Self.rfcCodes.utf8)
    let key = Array("12345678901234567890".utf8)
    let end = UInt64(seconds) * 1_000_000_000
    var cryptography = OpenSSLCryptography()
    var (count, wrong, elapsed): (UInt64, UInt64, UInt64) = (0, 0, 0)
    let start = Stopwatch.now
    repeat {
      do throws(CryptographyFailure) {
        for _ in 0..<100 {
          for counter in 0..<Self.rfcCodeCount {
            let code = try HOTP.code(
              counter: UInt64(counter), key: key.span, hash: .sha1, length: .six, using: &cryptography)
            let start = counter * CodeLength.six.digits
            if !code.bytes.elementsEqual(expected.span.extracting(start..<start + CodeLength.six.digits)) { wrong += 1 }
          }
        }
      } catch { throw Failure(.fault, "libcrypto failed") }
      count += UInt64(100 * Self.rfcCodeCount)
      elapsed = Stopwatch.now - start
    } while elapsed < end
    guard wrong == 0 else { throw Failure(.malformed, "\(wrong) of \(count) codes are wrong") }
    report(codes: count, nanoseconds: elapsed)
  }

  private func report(codes: UInt64, nanoseconds: UInt64) {
    let perSecond = UInt64(Double(codes) * 1e9 / Double(nanoseconds))
    guard output.json else { return Console.result("\(perSecond) codes a second, each \(nanoseconds / codes) ns") }
    Console.result(
      .object([
        ("codes", .integer(codes)), ("microseconds", .integer(nanoseconds / 1000)),
        ("codes_per_second", .integer(perSecond)),
      ]))
  }

  /// The codes of the counters 0 to 9, one after the other. Source: RFC 4226 appendix D.
  private static let rfcCodes = "755224287082359152969429338314254676287922162583399871520489"
  private static let rfcCodeCount = 10
}
