import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL

struct DeviceTrust: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "trust",
    abstract: "Trust an issuer's key from now on, or no longer. A running device sees it at once.",
    examples: [
      "holdfast device trust --dir lock service.json",
      "holdfast device trust --dir lock --remove 0f1e2d3c4b5a6978",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Trust it no longer; the key may be given by its id.")
  var remove = false

  @Argument(
    help: "A file with the issuer's public JWK, as service show prints it, or with a key that service mac-key wrote.",
    completion: .file())
  var issuer: String

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let ledger = try owned.ledger()
    let now = SystemClock().unixSeconds()
    if remove {
      let keyID = try keyIDToRemove()
      let wasTrusted = try recording { () throws(LedgerFault) in try ledger.removeTrust(keyID, realClock: now) }
      guard wasTrusted else { throw Failure(.denied, "issuer \(hexadecimal(keyID)) was not trusted") }
      report(keyID, "trusted no longer")
    } else {
      let key = try IssuerKey(file: issuer)
      let keyID = try key.keyID()
      let isNew = try recording { () throws(LedgerFault) in try ledger.trust(key, realClock: now) }
      report(keyID, isNew ? "trusted" : "trusted already", algorithm: IssuerAlgorithm(of: key))
      if key.isMAC, !owned.policyReading.policy.acceptsMAC {
        Console.note("its tokens count once policy.json has the member \"issuer\": {\"mac\": true}")
      }
    }
  }

  private func keyIDToRemove() throws(Failure) -> KeyID {
    if let keyID: KeyID = fixedBytes(hexadecimal: issuer) { return keyID }
    return try IssuerKey(file: issuer).keyID()
  }

  private func report(_ keyID: KeyID, _ state: String, algorithm: IssuerAlgorithm? = nil) {
    if output.json {
      Console.result(
        .object(
          [("kid", .string(hexadecimal(keyID))), ("state", .string(state))]
            + (algorithm.map { [("algorithm", .string($0.rawValue))] } ?? [])))
    } else {
      Console.result("issuer \(hexadecimal(keyID))\(algorithm?.note ?? ""): \(state)")
    }
  }
}
