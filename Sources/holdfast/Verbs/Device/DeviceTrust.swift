import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

struct DeviceTrust: Verb {
  static let configuration = CommandConfiguration(
    commandName: "trust", abstract: "Trust an issuer's key from now on, or no longer. A running device sees it at once."
  )

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Trust it no longer; the key may be given by its id.")
  var remove = false

  @Argument(help: "A file with the issuer's public JWK, as service show prints it.")
  var issuer: String

  mutating func perform() throws(Failure) {
    let folder = try device.open()
    let ledger = try device.openLedger(folder)
    let now = SystemClock().unixSeconds()
    if remove {
      let keyID = try keyIDToRemove()
      let wasTrusted = try recording { () throws(LedgerFault) in try ledger.removeTrust(keyID, realClock: now) }
      guard wasTrusted else { throw Failure(.denied, "issuer \(hexadecimal(keyID)) was not trusted") }
      report(keyID, "trusted no longer")
    } else {
      let key = try PublicKeyJWK(file: issuer)
      let keyID = try key.keyID()
      let isNew = try recording { () throws(LedgerFault) in try ledger.trust(key, realClock: now) }
      report(keyID, isNew ? "trusted" : "trusted already")
    }
  }

  private func keyIDToRemove() throws(Failure) -> KeyID {
    if let keyID: KeyID = fixedBytes(hexadecimal: issuer) { return keyID }
    return try PublicKeyJWK(file: issuer).keyID()
  }

  private func report(_ keyID: KeyID, _ state: String) {
    if output.json {
      Console.result(.object([("kid", .string(hexadecimal(keyID))), ("state", .string(state))]))
    } else {
      Console.result("issuer \(hexadecimal(keyID)): \(state)")
    }
  }
}

extension PublicKeyJWK {
  /// Reads a JWK, or the `issuer` of what `service show --json` prints; `-` is standard input.
  init(file path: String) throws(Failure) {
    let bytes = try Input.read(path, limit: 16_384)
    let value: JSONValue
    do throws(JSONFault) { value = try JSONValue(parsing: bytes, byteLimit: 16_384) } catch {
      throw Failure(KeyFault.malformed, path: path)
    }
    do throws(KeyFault) { try self.init(value["issuer"] ?? value) } catch { throw Failure(error, path: path) }
  }

  func keyID() throws(Failure) -> KeyID {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try HoldfastCore.keyID(of: point, using: &cryptography) } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
  }
}
