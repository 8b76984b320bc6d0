import HoldfastCore

/// What an attestation token says. The measurements and the proof key are secrets.
struct AttestationClaims: ~Copyable {
  /// `iss`.
  var issuer: BoundedText<64>
  /// `aud`: the API domain.
  var audience: BoundedText<255>
  /// `iat` and `exp`, Unix seconds.
  var issuedAt: UInt64
  var expires: UInt64
  /// `did`: names the app's device to the service alone.
  var deviceID: FixedBytes<16>
  /// `arc`: a code for logs.
  var responseCode: BoundedText<16>
  /// `pay`: what ``deviceBinding(_:using:)`` gives.
  var binding: Digest
  /// `imh`, `dmh` and `mpk`.
  var integrity: Secret<32>
  var device: Secret<32>
  var proofKey: Secret<16>
  /// `sub`, the app that was approved; nil from a service that does not say.
  var subject: BoundedText<64>?
  /// `ver`, its version; nil from a service that does not say.
  var version: AppVersion?

  /// The `typ` of the JWS.
  static var type: String { "holdfast-at+jwt" }
}
