import HoldfastCore

/// A device's descriptor in the bytes that its maker signed, with the signature, which is not yet checked.
package struct SignedDescriptor: Sendable {
  /// The device's id and public key.
  package let device: DeviceDescriptor
  private let text: [UInt8]
  private let signature: [UInt8]

  /// Reads the descriptor.
  ///
  /// - Parameters:
  ///   - text: The descriptor, exactly as it was signed, at most 4096 bytes.
  ///   - signature: The signature in DER (``MakerSignature``).
  /// - Throws: ``KeyFault``.
  package init(_ text: [UInt8], signature: [UInt8]) throws(KeyFault) {
    device = try DeviceDescriptor(json: text)
    (self.text, self.signature) = (text, signature)
  }

  /// Returns whether one of these makers signed that this device has this key.
  package func isSignature(for device: DeviceDescriptor, byOneOf makers: [P256Point]) -> Bool {
    device == self.device && MakerSignature.signer(of: text, signature, among: makers) != nil
  }
}
