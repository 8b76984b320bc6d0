import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The conditions under which an issuer gives tokens to provers.
public typealias Conditions = HoldfastFormats.Conditions
/// Settings that an issuer gives an app together with a token.
public typealias AppSettings = HoldfastFormats.AppSettings
/// A rule about the version of the app or of its operating system.
public typealias ComplianceRule = HoldfastFormats.ComplianceRule
/// A version of numbers with dots between them.
public typealias DottedVersion = HoldfastFormats.DottedVersion

/// Signs the terms of a token, so that the prover can check that they are the issuer's and belong to the token.
///
/// The issuer's key also signs measurement tokens. The type in the signed header keeps the two apart.
///
/// - Parameters:
///   - token: The token, which the terms name by its digest.
///   - subject: The approved app.
///   - version: The version of the app.
///   - issuer: The name of the issuer.
///   - conditions: The conditions.
///   - now: The time from which the offline limit counts, in Unix seconds.
///   - key: The issuer's key.
/// - Returns: The terms, a compact JWS; nil if there are no conditions.
/// - Throws: `tooLong` for terms that no prover would accept; `cryptography` if the key does not sign.
package func signedTerms(
  of token: [UInt8], subject: BoundedText<64>, version: AppVersion, from issuer: BoundedText<64>,
  conditions: Conditions, now: UInt64, key: inout some SigningKey & ~Copyable
) throws(TokenWritingFault) -> [UInt8]? {
  guard !conditions.isEmpty else { return nil }
  let digest: Digest
  do throws(CryptographyFailure) { digest = try Terms.digest(of: token) } catch { throw .cryptography }
  let terms = Terms(
    issuer: issuer, tokenDigest: digest, issued: now, subject: subject, version: version, conditions: conditions)
  do throws(TermsFault) {
    return try SignedTerms(terms, point: key.publicPoint) { (digest) throws(CryptographyFailure) in
      try key.sign(digest)
    }.bytes
  } catch { throw error == .malformed ? .tooLong : .cryptography }
}
