import HoldfastCore
import HoldfastOpenSSL

/// Why a credential cannot be written as a URI.
public enum ExportFault: Error, Equatable, Sendable {
  /// The format has no OCRA.
  case unsupportedMethod
  /// A name that would be read as another one: it has a colon in it, or begins with a space.
  case ambiguousName
}

extension Credential {
  /// Writes the credential as `otpauth://totp/…` or `otpauth://hotp/…`: the secret is in it, in base32.
  ///
  /// Source: Google's Key URI format. Every parameter is written, so that no reader's defaults matter.
  public func otpauthURI() throws(ExportFault) -> SecretBytes {
    guard !user.contains(":"), !issuer.contains(":"), !user.hasPrefix(" ") else { throw .ambiguousName }
    var uri = SecretBuffer(capacity: 512)
    let hash: OATHHash
    let length: CodeLength
    switch method {
    case .hotp(let givenHash, let givenLength):
      uri.append("otpauth://hotp/")
      (hash, length) = (givenHash, givenLength)
    case .totp(let givenHash, let givenLength, _):
      uri.append("otpauth://totp/")
      (hash, length) = (givenHash, givenLength)
    case .ocra: throw .unsupportedMethod
    }
    if !issuer.isEmpty {
      uri.append(percentEncoding: issuer)
      uri.append(":")
    }
    uri.append(percentEncoding: user)
    uri.append("?secret=")
    appendSecret(to: &uri)
    if !issuer.isEmpty {
      uri.append("&issuer=")
      uri.append(percentEncoding: issuer)
    }
    uri.append("&algorithm=")
    uri.append(hash.keyURIName)
    uri.append("&digits=")
    uri.append(decimal: UInt64(length.digits))
    if case .totp(_, _, let periodSeconds) = method {
      uri.append("&period=")
      uri.append(decimal: periodSeconds)
    } else {
      uri.append("&counter=")
      uri.append(decimal: nextCounter)
    }
    return SecretBytes(copying: uri.bytes)
  }

  /// Writes the secret in base32 without padding, as the format wants it.
  private func appendSecret(to uri: inout SecretBuffer) {
    var text = secret.withBytes { Base32.encode($0) }
    var count = text.count
    while count > 0, text[count - 1] == 0x3d { count -= 1 }
    for index in 0..<count { uri.append(text[index]) }
    var bytes = text.mutableSpan
    wipe(&bytes)
  }
}
