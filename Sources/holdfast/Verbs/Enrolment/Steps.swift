import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastProver
import HoldfastLinux

struct Measure: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Take a baseline: write its configuration to the state folder, and its evidence to a file.",
    discussion: """
      Anyone who reads the evidence knows the measurements in every baseline of this host, so only this user can read the \
      file. Delete it once attest has read it, or use attest --delete-evidence. The baseline waits in the state folder until \
      issue turns it into an enrolment. Existing enrolments do not change.
      """,
    examples: [
      "holdfast measure --state phone --out evidence.cbor",
      "holdfast measure --state phone --device lock.json --out evidence.cbor",
    ])

  @Option(help: "The prover's state folder, which is created if necessary.", completion: .directory)
  var state: String

  @Option(
    help: "The device that the baseline is for: its descriptor or its id. By default, the device that issue names.",
    completion: .file())
  var device: String?

  @Flag(help: "Replace a baseline that is waiting for its token.")
  var replace = false

  @Option(help: "The file for the evidence.", completion: .file())
  var out: String

  @OptionGroup var app: AppOptions
  @OptionGroup var posture: PostureOptions
  @OptionGroup var measuring: MeasuringOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let claims = try app.claims()
    let baseline = try writing(state) { (prover) throws(ProverError) in
      try prover.with(posture, measuring).begin(for: id, as: claims, replacing: replace)
    }
    baseline.measurement.warnOfWeakHost()
    try Output.write(baseline.evidence, to: out)
    report(
      output, "evidence of \(baseline.evidence.count) bytes in \(out)", bytes: baseline.evidence.count,
      more: baseline.measurement.statistics)
    if !output.json {
      Console.note("delete \(out) once attest has read it: it reveals the measurements behind this host's proofs")
    }
  }
}

struct Attest: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Submit evidence to the service, and receive an attestation token for one device.",
    examples: [
      """
      holdfast attest --service service --device lock.json \\
      --evidence evidence.cbor --delete-evidence --out attestation.jwt
      """
    ])

  @Option(help: "The service's folder.", completion: .directory)
  var service: String

  @Option(help: "The device's descriptor, as device show --json prints it.", completion: .file())
  var device: String

  @Option(help: "The evidence, as measure wrote it.", completion: .file())
  var evidence: String

  @Flag(help: "Delete the evidence once the attestation token has been written.")
  var deleteEvidence = false

  @Option(help: "The file for the attestation token.", completion: .file())
  var out: String

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard !deleteEvidence || evidence != "-" else {
      throw Failure(
        .usage, "--delete-evidence requires the file with the evidence", hint: "standard input cannot be deleted")
    }
    let descriptor = try DeviceDescriptor(file: device)
    let bytes = try Input.read(evidence, limit: 65_536)
    let token = try ServiceClient(path: service).attest(bytes, for: descriptor)
    try Output.write(token, to: out)
    if deleteEvidence {
      do throws(FileError) { try Files.removeFile(at: evidence) } catch {
        throw Failure(error, hint: "the token is in \(out); delete the evidence by hand")
      }
    } else if !output.json, evidence != "-" {
      Console.note("delete \(evidence) now, as it is no longer needed: rm \(evidence.shellWord)")
    }
    report(output, "attestation token of \(token.count) bytes in \(out)", bytes: token.count)
  }
}

struct Issue: Verb {
  static let configuration = CommandConfiguration(
    abstract:
      "Submit an attestation token to the backend, and complete the enrolment with the measurement token.",
    examples: [
      """
      holdfast issue --service service --device lock.json \\
      --attestation attestation.jwt --state phone
      """
    ])

  @Option(help: "The service's folder.", completion: .directory)
  var service: String

  @Option(help: "The device's descriptor, as device show --json prints it.", completion: .file())
  var device: String

  @Option(help: "The attestation token, as attest wrote it.", completion: .file())
  var attestation: String

  @Option(
    help: "The prover's state folder, into which measure wrote the baseline.",
    completion: .directory)
  var state: String

  @Flag(help: "Replace an existing enrolment for the device.")
  var replace = false

  @OptionGroup var token: TokenOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let descriptor = try DeviceDescriptor(file: device)
    let options = try token.options()
    let attestation = try Input.read(attestation, limit: 65_536)
    try reading(state) { (prover) throws(ProverError) in
      try prover.checkIsAwaited(for: descriptor.deviceID, replacing: replace)
    }
    let token = try ServiceClient(path: service).issue(attestation, for: descriptor, options: options)
    try writing(state) { (prover) throws(ProverError) in
      try prover.accept(token, for: descriptor, replacing: replace)
    }
    report(
      output,
      "measurement token of \(token.bytes.count) bytes for device \(hexadecimal(descriptor.deviceID)) in \(state)",
      bytes: token.bytes.count, more: [("token", token.report?.json ?? .null)])
  }
}

struct Accept: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Complete the enrolment with a measurement token that another backend issued.",
    discussion: """
      Use this with a backend that takes the evidence from measure and returns a measurement token. Only the device can read \
      the token; it also decides whether the token is valid. The whole answer of an online service to POST /v1/tokens is \
      accepted too: it also brings the issuer's terms, such as an offline limit and settings, and its report.
      """,
    examples: [
      "holdfast accept --state phone --device lock.json token.cose",
      "holdfast accept --state phone --device lock.json answer.json",
    ])

  @Option(help: "The device's descriptor, as device show --json prints it.", completion: .file())
  var device: String

  @Option(
    help: "The prover's state folder, into which measure wrote the baseline.",
    completion: .directory)
  var state: String

  @Flag(help: "Replace an existing enrolment for the device.")
  var replace = false

  @Argument(help: "The measurement token, or the answer with it; - is standard input.", completion: .file())
  var token: String

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let descriptor = try DeviceDescriptor(file: device)
    let bytes = try Input.read(token, limit: MeasurementToken.maximumAnswerByteCount)
    guard !bytes.isEmpty else {
      throw Failure(.malformed, "\(token) is empty", hint: "the backend issued no token; its output says why")
    }
    let accepted: MeasurementToken
    do throws(StateFolderFault) { accepted = try MeasurementToken(answer: bytes) } catch {
      throw Failure(error, folder: state)
    }
    try writing(state) { (prover) throws(ProverError) in
      try prover.accept(accepted, for: descriptor, replacing: replace)
    }
    report(
      output,
      "measurement token of \(accepted.bytes.count) bytes for device \(hexadecimal(descriptor.deviceID)) in \(state)",
      bytes: accepted.bytes.count,
      more: [("token", accepted.report?.json ?? .null), ("terms", .bool(accepted.terms != nil))])
  }
}

/// Reports the file that a step wrote.
private func report(_ output: OutputOptions, _ text: String, bytes: Int, more: [(String, JSONValue)] = []) {
  if output.json {
    Console.result(.object([("bytes", .integer(UInt64(bytes)))] + more))
  } else {
    Console.result(text)
  }
}

extension LiveMeasurement {
  /// The duration of each component, whether the code was known, and the parts for which fs-verity replaced reading the bytes. The statistics hold
  /// no digest or secret.
  fileprivate var statistics: [(String, JSONValue)] {
    [
      ("microseconds", .object(durations.map { ($0.id.description, .integer($0.nanoseconds / 1000)) })),
      ("known", .bool(isCodeKnown)), ("trees", .bool(hasTreeDigests)),
      (
        "verity",
        .object([
          ("image", .bool(verity.hasImage)), ("segments", .integer(UInt64(verity.segmentCount))),
          ("all_segments", .integer(UInt64(verity.allSegmentCount))),
        ])
      ),
    ]
  }
}

/// The output files of a verb, which only this user can access. A file is written completely or not at all.
enum Output {
  static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
    do throws(FileError) { try Files.writeFileAtomically(bytes, at: path, overwrite: true) } catch {
      throw Failure(making: error)
    }
  }
}
