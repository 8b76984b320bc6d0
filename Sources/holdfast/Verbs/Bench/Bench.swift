import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure speed: proofs, rounds, measurements, a board and one-time passwords.",
    examples: [
      "holdfast bench latency --rounds 200 --svg latency.svg",
      "holdfast bench compare before.json after.json",
    ],
    subcommands: [
      BenchLatency.self, BenchRounds.self, BenchMeasure.self, BenchBoard.self, BenchOTP.self, BenchCompare.self,
    ])
}

struct BenchOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "Measure how many one-time passwords this host computes per second.",
    discussion: """
      The codes are HOTP codes with HMAC-SHA-1 and six digits, computed in one thread. Each code starts from the bytes of the \
      key and is compared with the code in RFC 4226. The exit status is 2 if one differs.
      """,
    examples: [
      "holdfast bench otp --seconds 5"
    ])

  @Option(help: "The duration of the measurement in seconds, 1 to 3600.")
  var seconds: Int = 1

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard (1...3600).contains(seconds) else { throw Failure(.usage, "--seconds must be from 1 to 3600") }
    let expected = Array(Self.rfcCodes.utf8)
    let key = Array("12345678901234567890".utf8)
    let end = UInt64(seconds) * 1_000_000_000
    var cryptography = OpenSSLCryptography()
    var (count, wrong, elapsed): (UInt64, UInt64, UInt64) = (0, 0, 0)
    let start = monotonicNanoseconds()
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
      elapsed = monotonicNanoseconds() - start
    } while elapsed < end
    guard wrong == 0 else { throw Failure(.malformed, "\(wrong) of \(count) codes are wrong") }
    report(codes: count, nanoseconds: elapsed)
  }

  private func report(codes: UInt64, nanoseconds: UInt64) {
    let perSecond = UInt64(Double(codes) * 1e9 / Double(nanoseconds))
    guard output.json else { return Console.result("\(perSecond) codes per second, \(nanoseconds / codes) ns each") }
    Console.result(
      .object([
        ("codes", .integer(codes)), ("microseconds", .integer(nanoseconds / 1000)),
        ("codes_per_second", .integer(perSecond)),
      ]))
  }

  /// The codes of the counters 0 to 9 without separators. Source: RFC 4226 appendix D.
  private static let rfcCodes = "755224287082359152969429338314254676287922162583399871520489"
  private static let rfcCodeCount = 10
}
