import ArgumentParser
import HoldfastFormats
import HoldfastLinux
import HoldfastVectors

struct Vectors: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Replay test vectors in the format of Wycheproof.",
    examples: [
      "holdfast vectors replay vectors/*.json"
    ],
    subcommands: [VectorsReplay.self])
}

struct VectorsReplay: Verb {
  static let configuration = CommandConfiguration(
    commandName: "replay", abstract: "Replay test vectors: Holdfast's own and those of Wycheproof that apply.",
    discussion: """
      Of Wycheproof, these types are replayed: Aead, Mac, Hkdf, Keywrap, RsaesOaepDecrypt, Ecdh, EcdhEcpoint, \
      EcdhWebcrypto, EcdsaVerify, EcdsaP1363Verify, JsonWebEncryption, JsonWebSignature, JsonWebKey and JsonWebCrypto. \
      Examples of the COSE working group and of RFC 7520, and NIST's files for HKDF and one-step derivation, are replayed, too. \
      Other tests are skipped, with the reason.

      The exit status is 2 if a test fails, or a file or a test is malformed; everything else is replayed nevertheless.
      """,
    examples: [
      "holdfast vectors replay vectors/*.json",
      "holdfast vectors replay vectors/oath-hotp.json --json",
    ])

  @Argument(help: "Files of test vectors.", completion: .file())
  var files: [String]

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    var report = Report()
    var refusals: [Failure] = []
    for path in files {
      do throws(Failure) { report.merge(try replay(path)) } catch {
        refusals.append(error)
        Console.report(error)
      }
    }
    for fault in report.faults { Console.report(Failure(fault)) }
    if output.json {
      Console.result(report.json(refusedFileCount: refusals.count))
    } else {
      for failure in report.failures { Console.result("FAILED \(failure.line)") }
      for skip in report.skips { Console.result("skipped \(skip.count) of \(skip.file): \(skip.reason)") }
      Console.result("\(report.passed) passed, \(report.failed + refusals.count) failed, \(report.skipped) skipped")
    }
    if let refusal = refusals.first {
      throw (refusals.count == 1 ? refusal : Failure(.malformed, "\(refusals.count) files could not be replayed"))
        .afterResult()
    }
    guard report.failed == 0 else { throw Failure(.malformed, "\(report.failed) tests failed").afterResult() }
    guard report.passed > 0 else {
      throw Failure(
        .malformed, "no test was replayed", hint: "none of these files has tests that apply here"
      ).afterResult()
    }
  }

  private func replay(_ path: String) throws(Failure) -> Report {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(at: path, limit: VectorFile.maximumByteCount)
    } catch { throw Failure(error) }
    do throws(VectorFault) { return try VectorFile(parsing: bytes, name: path).replay() } catch { throw Failure(error) }
  }
}

extension Report.Failure {
  fileprivate var line: String { "\(file) tcId \(testID) (\(comment)): expected \(expected), \(happened)" }
}

extension Report {
  fileprivate func json(refusedFileCount: Int) -> JSONValue {
    .object([
      ("passed", .integer(UInt64(passed))), ("failed", .integer(UInt64(failed + refusedFileCount))),
      ("skipped", .integer(UInt64(skipped))),
      (
        "failures",
        .array(
          failures.map {
            .object([("file", .string($0.file)), ("tcId", .integer($0.testID)), ("happened", .string($0.happened))])
          })
      ),
    ])
  }
}
