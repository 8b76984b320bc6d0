import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

extension ServiceFolder {
  /// Signs a document with the issuer's key, such as rules about the posture of provers or the policy of devices.
  ///
  /// Its type is in the signed header, and a device accepts only the types of measurement tokens as tokens. A signature of a document
  /// can therefore never be taken for a token.
  ///
  /// - Parameters:
  ///   - claims: the claims of the document, which were checked.
  ///   - type: the value of `typ`.
  /// - Returns: a compact JWS.
  package func sign(document claims: JSONValue, type: String) throws(ServiceFolderFault) -> [UInt8] {
    try checkIsWhole()
    var key = try signingKey(.issuer)
    do throws(CryptographyFailure) { return try SignedJSON.sign(claims, type: type, with: &key) } catch {
      throw .cryptography
    }
  }
}
