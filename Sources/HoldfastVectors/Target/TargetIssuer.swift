import HoldfastCore
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL

/// The issuer of the vectors, whose published private key issues tokens that have not expired.
package struct TargetIssuer {
  let deviceID: DeviceID
  let deviceKeyID: KeyID
  private let scalar: FixedBytes<32>
  private let devicePoint: P256Point

  private static let secondsOfValidity: UInt64 = 3600
  /// A command of the policy of each device that `vectors device` makes, which needs only the factor `device`.
  private static let command = "status"

  fileprivate init(_ group: VectorNode, scalar: FixedBytes<32>) throws(VectorFault) {
    let parties = try Parties(group)
    (deviceID, deviceKeyID) = (parties.deviceID, parties.deviceKeyID)
    devicePoint = try group.member("devicePublicKey").fixed()
    self.scalar = scalar
  }

  /// Issues a token for a prover with these secrets.
  func carrier(_ secrets: TargetSecrets = TargetSecrets()) throws(Refusal) -> TokenCarrier {
    guard let now = SystemClock().unixSeconds() else { throw Refusal(reason: "no clock") }
    var random = SystemRandom()
    var cryptography = OpenSSLCryptography()
    let tokenID: TokenID
    do throws(RandomFailure) { tokenID = try random.fixedBytes() } catch { throw Refusal(reason: "no random bytes") }
    let claims = MeasurementClaims(
      issuer: BoundedText("issuer.example"), subject: BoundedText("app"), audience: deviceID,
      expires: now + Self.secondsOfValidity, issuedAt: now, tokenID: tokenID, integrity: secret(secrets.integrity),
      device: secret(secrets.device), proofKey: secret(secrets.proofKey), generation: 1)
    let key: P256PrivateKey
    do throws(CryptographyFailure) { key = try P256PrivateKey(scalar: secret(scalar)) } catch {
      throw Refusal(reason: "no issuer's key")
    }
    var issuer = IssuerSecrets(signing: key)
    do throws(TokenWritingFault) {
      let token = try MeasurementTokenWriter().write(
        claims, to: devicePoint, issuer: &issuer, random: &random, using: &cryptography)
      return TokenCarrier(token, .cose, secrets)
    } catch { throw Refusal(reason: "no token") }
  }

  /// Returns a request that a device carries out, and that changes nothing.
  static func request(number: UInt64? = nil) -> [UInt8] {
    var request = Request(command: BoundedText<32>(command) ?? BoundedText())
    request.number = number
    var buffer = MessageBuffer()
    do throws(EncodingFault) { try request.encode(into: &buffer) } catch { return [] }
    return array(buffer.bytes)
  }
}

/// The secrets in a token, with which a prover proves.
struct TargetSecrets {
  var proofKey = FixedBytes<16>()
  var integrity = FixedBytes<32>()
  var device = FixedBytes<32>()
}

extension VectorFile {
  /// The issuer whose private key the file has, well-formed; nil if it has none.
  package var targetIssuer: TargetIssuer? {
    for group in groups {
      guard let scalar = group.node.optional("issuerPrivateKey") else { continue }
      do throws(VectorFault) { return try TargetIssuer(group.node, scalar: try scalar.fixed()) } catch {}
    }
    return nil
  }
}
