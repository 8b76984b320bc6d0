import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL

/// What binds an attestation token to the device that its app asks for, the claim `pay`: SHA-256 of device id ‖ public point.
func deviceBinding(
  _ device: DeviceDescriptor, using cryptography: inout OpenSSLCryptography
) throws(CryptographyFailure) -> Digest {
  var hash = cryptography.sha256()
  hash.append(device.deviceID.bytes)
  hash.append(device.publicKey.point.bytes)
  return try hash.finish()
}
