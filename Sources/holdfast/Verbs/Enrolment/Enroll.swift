import ArgumentParser
import HoldfastCore
import HoldfastJSON
import HoldfastKeys
import HoldfastMeasurement
import HoldfastText

struct Enroll: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Measure, attest and issue in one step: fill the prover's state folder for one device.",
    discussion: "The baseline is always fresh. The steps alone are measure, attest and issue.",
    examples: [
      "holdfast enroll --device lock.json --service service --state phone",
      """
      holdfast enroll --device lock.json --service service --state phone \\
      --allow unlock --allow lock --maximum-uses 100 --valid-for 86400
      """,
    ])

  @Option(help: "The device's descriptor, as device show --json prints it.", completion: .file())
  var device: String

  @Option(help: "The service's folder.", completion: .directory)
  var service: String

  @Option(help: "The prover's state folder; made if it is not there.", completion: .directory)
  var state: String

  @OptionGroup var app: AppOptions
  @OptionGroup var token: TokenOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let descriptor = try DeviceDescriptor(file: device)
    let options = try token.options()
    let client = ServiceClient(path: service)
    let baseline = try app.takeBaseline()
    let attestation = try client.attest(baseline.evidence, for: descriptor)
    let (bytes, expires) = try client.issue(attestation, for: descriptor, options: options)
    let folder = ProverFolder(path: state)
    try folder.create()
    try folder.store(
      Enrolment(
        descriptor: descriptor, encoding: options.format.encoding, configuration: baseline.configuration.encoded(),
        token: bytes, fingerprints: baseline.fingerprints))
    if output.json {
      Console.result(
        .object([
          ("device_id", .string(hexadecimal(descriptor.deviceID))), ("token_bytes", .integer(UInt64(bytes.count))),
          ("expires", .integer(expires)),
          ("rests_on_device_secret_alone", .bool(baseline.measurement.restsOnDeviceSecretAlone)),
        ]))
    } else {
      Console.result(
        "enrolled for device \(hexadecimal(descriptor.deviceID)): a token of \(bytes.count) bytes, "
          + "until \(Timestamp(unixSeconds: expires))")
    }
  }
}
