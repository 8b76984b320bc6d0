import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

/// The benchmark of one-time passwords. One takes less than a microsecond: the times are those of 10,000 of them.
struct BenchOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "Measure how many one-time passwords this host computes per second.",
    discussion: """
      The codes are HOTP codes with HMAC-SHA-1 and six digits, computed in one thread. Each code starts from the bytes of the \
      key and is compared with the code in RFC 4226. The percentiles are those of the time of 10,000 codes. The exit status is 2 \
      if a code differs.
      """,
    examples: [
      "holdfast bench otp --seconds 5"
    ])

  @Option(help: "The duration of the measurement in seconds, 1 to 3600.")
  var seconds: Int = 1

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard (1...3600).contains(seconds) else { throw Failure(.usage, "--seconds must be from 1 to 3600") }
    let end = UInt64(seconds) * 1_000_000_000
    var cryptography = OpenSSLCryptography()
    // What is loaded with the first codes is not counted.
    try Self.computeBatch(using: &cryptography)
    var series = BenchSeries("total")
    var progress = BenchProgress("seconds", of: seconds)
    let record = BenchRecord(.otp)
    let start = monotonicNanoseconds()
    var stopwatch = Stopwatch()
    var elapsed: UInt64 = 0
    repeat {
      try Self.computeBatch(using: &cryptography)
      series.record(nanoseconds: stopwatch.lap())
      elapsed = monotonicNanoseconds() - start
      progress.step(Int(min(elapsed, end) / 1_000_000_000))
    } while elapsed < end
    report(series.total, record, nanoseconds: elapsed)
  }

  private func report(_ times: LatencyHistogram, _ record: BenchRecord, nanoseconds: UInt64) {
    let codes = times.totalCount * UInt64(Self.batchCount)
    let perSecond = UInt64(Double(codes) * 1e9 / Double(nanoseconds))
    guard output.json else {
      Console.result("\(perSecond) codes per second, \(nanoseconds / codes) ns each")
      for line in BenchSeries.table(of: [("10,000 codes", times)]) { Console.result(line) }
      if Console.isResultTerminal { for line in times.bars { Console.result(line) } }
      return
    }
    Console.result(
      .object(
        record.members(count: Int(codes), nil) + [
          ("codes", .integer(codes)), ("codes_per_second", .integer(perSecond)), ("microseconds", times.json),
        ]))
  }

  /// The codes of the counters 0 to 9 without separators. Source: RFC 4226 appendix D.
  private static let expected = Array("755224287082359152969429338314254676287922162583399871520489".utf8)
  private static let key = Array("12345678901234567890".utf8)
  private static let batchCount = 10_000

  /// Computes as many codes as one time is for, and compares each.
  private static func computeBatch(using cryptography: inout OpenSSLCryptography) throws(Failure) {
    let (expected, key, digits) = (expected, key, CodeLength.six.digits)
    let counters = expected.count / digits
    var wrong = 0
    do throws(CryptographyFailure) {
      for _ in 0..<batchCount / counters {
        for counter in 0..<counters {
          let code = try HOTP.code(
            counter: UInt64(counter), key: key.span, hash: .sha1, length: .six, using: &cryptography)
          let start = counter * digits
          if !code.bytes.elementsEqual(expected.span.extracting(start..<start + digits)) { wrong += 1 }
        }
      }
    } catch { throw Failure(.fault, "libcrypto failed") }
    guard wrong == 0 else { throw Failure(.malformed, "\(wrong) of \(batchCount) codes are wrong") }
  }
}
