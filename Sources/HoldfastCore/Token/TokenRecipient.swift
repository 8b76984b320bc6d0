/// The recipient of a token, which its envelope names in clear text.
package enum TokenRecipient {
  /// Returns the id of the key that a token is encrypted to.
  ///
  /// Source: RFC 9052 §5.1, RFC 7516 §4.1.6. Nothing authenticates it: the device decides.
  ///
  /// - Parameters:
  ///   - token: the token, at most 3072 bytes.
  ///   - encoding: the format of the token.
  /// - Returns: the id, 8 bytes; nil if the envelope is not one of a token.
  package static func keyID(of token: Span<UInt8>, encoding: TokenEncoding) -> KeyID? {
    do throws(EncodingFault) {
      switch encoding {
      case .reference: return nil
      case .cose: return try COSEEnvelope(token).recipientKeyID
      case .jose:
        let parts = try CompactJOSE<5>(token)
        var header = ByteBuffer<3072>()
        try header.append(base64URL: parts[0])
        return try JOSEHeader(header.bytes).keyID
      }
    } catch { return nil }
  }
}
