import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFirmware
import HoldfastFormats
import HoldfastLinux
import HoldfastTransport
import HoldfastVectors

struct Vectors: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Replay test vectors in the format of Wycheproof.",
    examples: [
      "holdfast vectors replay vectors/*.json"
    ],
    subcommands: [VectorsReplay.self, VectorsDevice.self])
}

struct VectorsReplay: Verb {
  static let configuration = CommandConfiguration(
    commandName: "replay", abstract: "Replay test vectors: Holdfast's own and those of Wycheproof that apply.",
    discussion: """
      Of Wycheproof, these types are replayed: Aead, Mac, Hkdf, Keywrap, RsaesOaepDecrypt, Ecdh, EcdhEcpoint, \
      EcdhWebcrypto, EcdsaVerify, EcdsaP1363Verify, JsonWebEncryption, JsonWebSignature, JsonWebKey and JsonWebCrypto. \
      Examples of the COSE working group and of RFC 7520, and NIST's files for HKDF and one-step derivation, are replayed, too. \
      Other tests are skipped, with the reason.

      With --target, the tests that a device judges are sent to a device, which must answer them as the vectors say. It \
      needs the vectors' key, as a device of holdfast vectors device has it; without that, only messages are sent. Of the other \
      tests, the output says why they cannot be sent.

      The exit status is 2 if a test fails, if a file or a test is malformed, or if no test was replayed. A malformed file or \
      test does not stop the replay of the others.
      """,
    examples: [
      "holdfast vectors replay vectors/*.json",
      "holdfast vectors replay vectors/oath-hotp.json --json",
      "holdfast vectors replay vectors/*.json --target unix:lock.sock",
      "holdfast vectors replay tokens.json --target unix:lock.sock --accepts mac",
    ])

  @Argument(help: "Files of test vectors.", completion: .file())
  var files: [String]

  @Option(
    help: "The endpoint of a device, whose answers are compared, such as unix:/run/lock.sock or tty:/dev/ttyACM0.")
  var target: String?

  @OptionGroup var policy: TargetPolicyOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let endpoint = try target.map { (text) throws(Failure) in try Endpoint(peerArgument: text) }
    let timeoutMilliseconds = try waiting.milliseconds()
    guard policy.accepts == nil || endpoint != nil else {
      throw Failure(.usage, "--accepts is about the device at --target, which is missing")
    }
    var device = endpoint.map { TargetDevice(at: $0, timeoutMilliseconds: timeoutMilliseconds) }
    var report = Report()
    var refusals: [Failure] = []
    func read(_ path: String) -> VectorFile? {
      do throws(Failure) { return try VectorFile(path: path) } catch {
        refusals.append(error)
        return nil
      }
    }
    if let endpoint {
      let read = files.compactMap(read)
      let issuer = read.lazy.compactMap(\.targetIssuer).first
      for file in read {
        do throws(TransportError) {
          report.merge(try file.replay(at: &device!, accepting: policy.accepted, issuer: issuer))
        } catch {
          for refusal in refusals { Console.report(refusal) }
          throw Failure(error, endpoint: endpoint)
        }
      }
    } else {
      for path in files { if let file = read(path) { report.merge(file.replay()) } }
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
      guard refusals.count > 1 else { throw refusal.afterResult() }
      for refusal in refusals { Console.report(refusal) }
      throw Failure(.malformed, "\(refusals.count) files could not be replayed").afterResult()
    }
    guard report.failed == 0 else { throw Failure(.malformed, "\(report.failed) tests failed").afterResult() }
    guard report.passed > 0 else {
      throw Failure(
        .malformed, "no test was replayed", hint: "none of these files has tests that apply here"
      ).afterResult()
    }
  }
}

/// The policy of a device under test.
struct TargetPolicyOptions: ParsableArguments {
  @Option(
    help: """
      The tokens that the policy of the device accepts: signed ones only, the default; also unsigned ones; or also those under a MAC \
      (mac). Each needs another device.
      """)
  var accepts: TargetPolicy?

  /// The tokens that were named, or signed ones.
  var accepted: TargetPolicy { accepts ?? .signed }
}

extension TargetPolicy: ExpressibleByArgument {}

/// A device with the keys of test vectors. It is for tests only.
struct VectorsDevice: Verb {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Make a device with the published key of test vectors, for replay --target.",
    discussion: """
      The device has the id and the key of the vectors, and trusts their issuer. Anyone can issue tokens for it: use it for \
      tests, and nothing else.
      """,
    examples: [
      "holdfast vectors device vectors/session_test.json --dir tested",
      "holdfast vectors device vectors/session_test.json --firmware tested.bin",
      "holdfast vectors device tokens.json --dir tested --accepts mac",
    ])

  @Argument(help: "A file of test vectors with a device's key.", completion: .file())
  var file: String

  @OptionGroup var policy: TargetPolicyOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let place = try device.place()
    let vectors = try VectorFile(path: file)
    let keys: TargetKeys?
    do throws(VectorFault) { keys = try vectors.targetKeys() } catch { throw Failure(error) }
    guard let keys else {
      throw Failure(.malformed, "\(file) has no key of a device", hint: "use vectors/session_test.json")
    }
    if policy.accepted.acceptsMAC, keys.macKey == nil {
      throw Failure(.malformed, "\(file) has no MAC key", hint: "use vectors/measurement_token_test.json")
    }
    var random = TargetRandom(keys)
    let descriptor: DeviceDescriptor
    switch place {
    case .folder(let path): descriptor = try makeFolder(path, keys, &random)
    case .image(let path): descriptor = try makeImage(path, keys, &random)
    }
    if output.json {
      Console.result(descriptor.json)
    } else {
      Console.result("device \(hexadecimal(descriptor.deviceID)) with the published key of \(file), for tests only")
    }
  }

  /// The policy of a new device, which accepts the tokens that `--accepts` names.
  private var devicePolicy: DevicePolicy {
    var policy = DevicePolicy.forSimulatedLock
    policy.acceptsUnsigned = self.policy.accepted.acceptsUnsigned
    policy.acceptsMAC = self.policy.accepted.acceptsMAC
    return policy
  }

  private func makeFolder(
    _ path: String, _ keys: TargetKeys, _ random: inout TargetRandom
  ) throws(Failure) -> DeviceDescriptor {
    let folder: DeviceFolder
    do throws(DeviceFolderFault) {
      folder = try DeviceFolder.create(at: path, policy: devicePolicy, random: &random, clock: SystemClock())
    } catch { throw Failure(making: error, folder: path, tpm: nil) }
    let ledger = try folder.ledger()
    let now = SystemClock().unixSeconds()
    try recording { () throws(LedgerFault) in
      try ledger.trust(IssuerKey.signing(keys.issuer), realClock: now)
      if let macKey = policy.accepted.acceptsMAC ? keys.issuerMACKey : nil { try ledger.trust(macKey, realClock: now) }
    }
    return folder.descriptor
  }

  private func makeImage(
    _ path: String, _ keys: TargetKeys, _ random: inout TargetRandom
  ) throws(Failure) -> DeviceDescriptor {
    var issuers = IssuerTable()
    let issuer = IssuerKey.signing(keys.issuer)
    _ = issuers.append(try issuer.keyID(), issuer)
    if let macKey = policy.accepted.acceptsMAC ? keys.issuerMACKey : nil {
      _ = issuers.append(try macKey.keyID(), macKey)
    }
    do throws(FirmwareImageFault) {
      return try FirmwareImage.create(
        at: path, policy: devicePolicy, trusting: issuers, random: &random, clock: SystemClock()
      ).descriptor
    } catch { throw Failure(making: error, image: path) }
  }
}

extension VectorFile {
  /// Reads a file of test vectors.
  fileprivate init(path: String) throws(Failure) {
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(at: path, limit: VectorFile.maximumByteCount)
    } catch { throw Failure(error) }
    do throws(VectorFault) { try self.init(parsing: bytes, name: path) } catch { throw Failure(error) }
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
      (
        "faults",
        .array(
          faults.map {
            .object([
              ("file", .string($0.file)), ("location", .string($0.location)),
              ("tcIds", .array($0.testIDs.map { .integer($0) })),
            ])
          })
      ),
      (
        "skips",
        .array(
          skips.map {
            .object([
              ("file", .string($0.file)), ("reason", .string($0.reason)), ("count", .integer(UInt64($0.count))),
            ])
          })
      ),
    ])
  }
}
