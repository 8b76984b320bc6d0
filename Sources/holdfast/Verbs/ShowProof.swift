import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastProver

struct ShowProof: Verb {
  static let configuration = CommandConfiguration(
    commandName: "proof",
    abstract: "Print the proofs of this app and host for a nonce, to try a verifier of your own.",
    discussion: """
      The verifier opens the token with its private key, computes both proofs with the token's key and measurements, and \
      compares: each is HMAC-SHA-256(MPK, nonce, measurement). A nonce is used once. Nothing is sent to a device.
      """,
    examples: [
      "holdfast proof --state phone --nonce 00112233445566778899aabbccddeeff",
      "holdfast proof --state phone --nonce 7f112233445566778899aabbccddeeff --json",
    ])

  @Option(help: "The verifier's nonce: 32 hexadecimal digits, the first of them 0 to 7.")
  var nonce: String

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(
    help:
      "The device whose token is printed: its id (32 hexadecimal digits) or its descriptor. Required if several are enrolled.",
    completion: .file())
  var device: String?

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard let nonce: Nonce = fixedBytes(hexadecimal: nonce.lowercased()) else {
      throw Failure(.usage, "--nonce must be 32 hexadecimal digits")
    }
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let proofs = try reading(state) { (prover) throws(ProverError) in try prover.proofs(nonce: nonce, device: id) }
    let members = [
      ("device_id", hexadecimal(proofs.device)), ("nonce", hexadecimal(nonce)),
      ("integrity_proof", hexadecimal(proofs.integrityProof)), ("device_proof", hexadecimal(proofs.deviceProof)),
      ("encoding", proofs.encoding == .jose ? "jose" : "cose"), ("token", proofs.tokenText),
    ]
    if output.json {
      Console.result(.object(members.map { ($0.0, .string($0.1)) }))
    } else {
      for (name, value) in members { Console.result("\(name): \(value)") }
    }
  }
}

extension MeasurementProofs {
  /// A JOSE token as it is, and a COSE token in base64url.
  fileprivate var tokenText: String {
    encoding == .jose ? String(decoding: token, as: UTF8.self) : base64URL(token.span)
  }
}
