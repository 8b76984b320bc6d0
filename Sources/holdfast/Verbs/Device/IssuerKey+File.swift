import HoldfastCore
import HoldfastDevice
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

extension IssuerKey {
  /// Reads an issuer's public JWK, the `issuer` of what `service show --json` prints, or the key of a MAC; `-` is standard
  /// input, but not for a MAC's, which only a file of this user's alone may hold.
  init(file path: String) throws(Failure) {
    let text = try SecretInput.read(path, limit: 16_384)
    guard MACKeyJWK.isSymmetricKey(text.bytes) else {
      self = .signing(try PublicKeyJWK(issuer: text, path: path).point)
      return
    }
    guard path != "-" else {
      throw Failure(
        .malformed, "standard input holds a key that is secret", hint: "give the file itself, which others cannot read")
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
    let value: JSONValue
    do throws(JSONFault) { value = try JSONValue(parsing: bytes, byteLimit: 16_384) } catch {
      throw Failure(KeyFault.malformed, path: path)
    }
    do throws(KeyFault) { try self.init(value["issuer"] ?? value) } catch { throw Failure(error, path: path) }
  }
}

extension IssuerAlgorithm {
  /// What is said beside the key id of an issuer that does not sign.
  var note: String {
    switch self {
    case .es256: ""
    case .hs256: " (MAC)"
    }
  }
}
