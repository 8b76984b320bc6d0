import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DeviceTrust: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "trust",
    abstract: "Trust an issuer's key, or stop trusting it. A running device applies this at once.",
    examples: [
      "holdfast device trust --dir lock service.json",
      "holdfast device trust --dir lock --remove 0f1e2d3c4b5a6978",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Stop trusting the key, which may be given by its id.")
  var remove = false

  @Argument(
    help: """
      A file with the issuer's public key: a JWK, as service show prints it, or PEM or DER, as openssl pkey -pubout writes it; or a \
      file with a key that service mac-key wrote.
      """,
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
        Console.note("its tokens are accepted once policy.json has the member \"issuer\": {\"mac\": true}")
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

extension IssuerKey {
  /// Reads an issuer's public key as PEM, DER or a JWK, the `issuer` of the output of `service show --json`, or a MAC key. `-` is standard
  /// input, but not for a MAC key, which must come from a file that only this user can access.
  init(file path: String) throws(Failure) {
    let text = try SecretInput.read(path, limit: 16_384)
    guard MACKeyJWK.isSymmetricKey(text.bytes) else {
      self = .signing(try PublicKeyJWK(issuer: text, path: path).point)
      return
    }
    guard path != "-" else {
      throw Failure(
        .malformed, "the key on standard input is secret", hint: "give the file itself, which others cannot read")
    }
    let key: Result<Secret<32>, KeyFault>
    do throws(FileError) {
      key = try Files.readSecretFile(at: path, limit: MACKeyJWK.maximumByteCount) { text in
        do throws(KeyFault) { return .success(try MACKeyJWK.decode(text)) } catch { return .failure(error) }
      }
    } catch { throw Failure(error) }
    switch consume key {
    case .success(let key): self = .mac(key)
    case .failure(let fault): throw Failure(fault, path: path)
    }
  }

  borrowing func keyID() throws(Failure) -> KeyID {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try HoldfastCore.keyID(of: self, using: &cryptography) } catch {
      throw Failure(.fault, "the cryptographic library failed")
    }
  }
}

extension PublicKeyJWK {
  fileprivate init(issuer text: borrowing SecretBytes, path: String) throws(Failure) {
    var bytes: [UInt8] = []
    bytes.append(text.bytes)
    do throws(KeyFault) {
      if let key = try SubjectPublicKeyInfo.publicKey(bytes) {
        self = key
        return
      }
    } catch { throw Failure(error, path: path) }
    let value: JSONValue
    do throws(JSONFault) { value = try JSONValue(parsing: bytes, byteLimit: 16_384) } catch {
      throw Failure(KeyFault.malformed, path: path)
    }
    do throws(KeyFault) { try self.init(value["issuer"] ?? value) } catch { throw Failure(error, path: path) }
  }
}

extension IssuerAlgorithm {
  /// The note next to the key id of an issuer that does not sign.
  var note: String {
    switch self {
    case .es256: ""
    case .hs256: " (MAC)"
    }
  }
}
