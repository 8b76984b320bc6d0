import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

extension ServiceFolder {
  /// Signs rules about the posture of provers with the issuer's key.
  ///
  /// Their type is in the signed header, and a device accepts only the types of measurement tokens. A signature of rules can
  /// therefore never be taken for a token.
  ///
  /// - Parameters:
  ///   - claims: the claims of the rules, which were checked.
  ///   - type: the value of `typ`.
  /// - Returns: a compact JWS, at most `SignedJSON.maximumByteCount` bytes.
  package func signPostureRules(_ claims: JSONValue, type: String) throws(ServiceFolderFault) -> [UInt8] {
    try checkIsWhole()
    var key = try signingKey(.issuer)
    do throws(CryptographyFailure) { return try SignedJSON.sign(claims, type: type, with: &key) } catch {
      throw .cryptography
    }
  }
}
