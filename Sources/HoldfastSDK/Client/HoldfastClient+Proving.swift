import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL

/// Signatures over messages, and proofs for a nonce.
extension HoldfastClient {
  /// Signs a message with the account's key, which the service gives with a successful fetch. If it refused the app last, the key
  /// is a random one: the signature is wrong, and nobody who watches the app sees that.
  ///
  /// Include a token in the message, so that the signature cannot be used again.
  ///
  /// Source: Approov, `getMessageSignature`.
  ///
  /// - Returns: the base64 of HMAC-SHA-256; nil before the first fetch, or if the account has not switched the feature on.
  public func messageSignature(of message: [UInt8]) -> String? {
    guard let key = state.withLock({ $0.messageKey }) else { return nil }
    var code = MAC()
    var bytes = code.mutableBytes
    do throws(CryptographyFailure) {
      try key.key.withBytes { (key) throws(CryptographyFailure) in
        try HMAC.sha256.authenticate(message.span, key: key, into: &bytes)
      }
    } catch { return nil }
    return paddedBase64(code.bytes)
  }

  /// The same for the UTF-8 bytes of a text.
  public func messageSignature(of message: String) -> String? { messageSignature(of: Array(message.utf8)) }

  /// Signs a message with the key of this installation, which the first call makes. It never leaves this host.
  ///
  /// - Returns: the base64 of the ECDSA P-256 signature over SHA-256, r ‖ s of 64 bytes.
  /// - Throws: ``ClientError/state(_:)``, ``ClientError/cryptography``.
  public func installationSignature(of message: [UInt8]) throws(ClientError) -> String {
    try withInstallationKey { key in paddedBase64(try key.sign(try sha256(message.span)).bytes) }
  }

  /// The public key of this installation as a JWK. A backend that gets it together with a token whose claim `pay` is its digest
  /// (see `setDataHashInToken`) knows that the attested app has the key.
  ///
  /// - Throws: ``ClientError/state(_:)``, ``ClientError/cryptography``.
  public func installationPublicKey() throws(ClientError) -> String {
    try withInstallationKey { key in
      String(decoding: PublicKeyJWK(point: key.publicPoint).json.compact(), as: UTF8.self)
    }
  }

  private func withInstallationKey(_ body: (inout P256PrivateKey) throws -> String) throws(ClientError) -> String {
    do {
      var key = try folder.installationKey()
      return try body(&key)
    } catch let error as FileError { throw .state(error) } catch { throw .cryptography }
  }

  /// Proves that the app and its host have not changed since a fetch with a measurement. No network is needed.
  ///
  /// Source: Approov, `getIntegrityMeasurementProof`.
  ///
  /// - Parameters:
  ///   - nonce: 16 bytes, never used before. The top bit of the first byte is zero, because nonces with that bit are those of
  ///     sessions.
  ///   - measurementConfig: ``FetchResult/measurementConfig``, as the app kept it.
  /// - Returns: `HMAC-SHA-256(MPK, nonce ‖ IM)`, 32 bytes.
  /// - Throws: ``ClientError/reservedNonce``, ``ClientError/measurement(_:)``.
  public func integrityMeasurementProof(nonce: [UInt8], measurementConfig: [UInt8]) throws(ClientError) -> [UInt8] {
    try checkNonce(nonce)
    do throws(MeasurementError) {
      return try HoldfastMeasurement.integrityMeasurementProof(
        nonce: nonce, configuration: measurementConfig, keys: keys)
    } catch { throw .measurement(error) }
  }

  /// Proves that the host is the one of a fetch with a measurement, independent of the state of the app.
  ///
  /// Source: Approov, `getDeviceMeasurementProof`. Parameters and errors are those of
  /// ``integrityMeasurementProof(nonce:measurementConfig:)``.
  ///
  /// - Returns: `HMAC-SHA-256(MPK, nonce ‖ DM)`, 32 bytes.
  public func deviceMeasurementProof(nonce: [UInt8], measurementConfig: [UInt8]) throws(ClientError) -> [UInt8] {
    try checkNonce(nonce)
    do throws(MeasurementError) {
      return try HoldfastMeasurement.deviceMeasurementProof(nonce: nonce, configuration: measurementConfig, keys: keys)
    } catch { throw .measurement(error) }
  }

  private func checkNonce(_ nonce: [UInt8]) throws(ClientError) {
    guard nonce.first ?? 0 < 0x80 else { throw .reservedNonce }
  }
}

extension MessageKey {
  /// Returns a random key.
  static func random() throws(RandomFailure) -> MessageKey {
    var random = SystemRandom()
    return MessageKey(try random.secret())
  }
}
