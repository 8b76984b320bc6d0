/// The form of a page, and its keys, for every device and for the home. Source: docs/couriers.md, The audit log goes home.
extension ByteSink where Self: ~Copyable {
  /// Writes the text of a page up to its entries: `[cut, after, head,` of `[cut, after, head, [* entry], count, last]`.
  ///
  /// - Parameters:
  ///   - cut: the number of entries that the device no longer keeps.
  ///   - base: the chain before the first entry of the page.
  package mutating func appendAuditPage(cut: UInt64, after base: AuditChain) throws(Failure) {
    try appendCBOR(array: 6)
    try appendCBOR(unsigned: cut)
    try base.encode(into: &self)
  }
}

/// Returns HMAC-SHA-256(shared, "holdfast/1 audit page salt" ‖ 0x00 ‖ random ‖ text), whose first 16 bytes are the salt of a page. It
/// depends on the text as well, so that two texts have different keys even if the random source repeats itself.
///
/// - Parameters:
///   - text: the padded text of the page.
///   - random: fresh random bytes.
///   - shared: ECDH of the device and the home: the x coordinate, 32 bytes.
///   - cryptography: an implementation of the primitives.
package func auditPageSalt<Crypto: Cryptography & ~Copyable>(
  for text: Span<UInt8>, _ random: FixedBytes<16>, under shared: borrowing Secret<32>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> MAC {
  var mac = try shared.withBytes { (shared) throws(CryptographyFailure) in try cryptography.hmacSHA256(key: shared) }
  mac.append(domain: "holdfast/1 audit page salt")
  mac.append(random.bytes)
  mac.append(text)
  return try mac.finish()
}

/// Derives the key of one page: HKDF-SHA-256(shared, salt, "holdfast/1 audit page" ‖ 0x00 ‖ device ‖ home).
///
/// - Parameters:
///   - shared: ECDH of the device and the home: the x coordinate, 32 bytes.
///   - salt: the salt of the page, 16 bytes.
///   - device: the id of the device.
///   - home: the id of the key that signs the home's receipts.
///   - cryptography: an implementation of the primitives.
package func auditPageKey<Crypto: Cryptography & ~Copyable>(
  from shared: borrowing Secret<32>, salt: Span<UInt8>, device: DeviceID, home: KeyID, using cryptography: inout Crypto
) throws(CryptographyFailure) -> Secret<32> {
  var info = ByteBuffer<64>()
  do throws(EncodingFault) {
    try info.append(domain: "holdfast/1 audit page")
    try info.append(device.bytes)
    try info.append(home.bytes)
  } catch { throw CryptographyFailure() }
  var key = Secret<32>()
  try shared.withBytes { (shared) throws(CryptographyFailure) in
    try key.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: shared, salt: salt, info: info.bytes, into: &bytes)
    }
  }
  return key
}

#if !hasFeature(Embedded)
/// The secret from which a device and the home of its log derive the keys of all pages. Each of the two computes it from its own private
/// key and the public key of the other; nobody else can.
///
/// Source: docs/couriers.md, The audit log goes home.
package struct AuditPageSecret: ~Copyable, Sendable {
  private let shared: Secret<32>
  private let device: DeviceID
  private let home: KeyID

  /// Creates the secret of a device and a home.
  ///
  /// - Parameters:
  ///   - shared: ECDH of the two: the x coordinate, 32 bytes.
  ///   - device: the id of the device.
  ///   - home: the id of the key that signs the home's receipts.
  package init(_ shared: consuming Secret<32>, device: DeviceID, home: KeyID) {
    self.shared = shared
    (self.device, self.home) = (device, home)
  }

  /// Seals a page: salt (16 bytes) ‖ AES-256-GCM ciphertext ‖ tag (16 bytes).
  ///
  /// The salt depends on the text as well, so that two texts have different keys even if the random source repeats itself.
  ///
  /// - Parameters:
  ///   - page: the page.
  ///   - random: fresh random bytes.
  ///   - cryptography: an implementation of the primitives.
  package borrowing func seal<Crypto: Cryptography & ~Copyable>(
    _ page: AuditPage, random: FixedBytes<16>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> [UInt8] {
    var text = page.encoded()
    let mac = try auditPageSalt(for: text.span, random, under: shared, using: &cryptography)
    let salt = mac.bytes.extracting(first: AuditPage.overhead.salt)
    let key = try auditPageKey(
      from: shared, salt: salt, device: device, home: home, using: &cryptography)
    var tag = AuthenticationTag()
    var message = text.mutableSpan
    try cryptography.aes256GCMSeal(
      key: key, nonce: FixedBytes<12>().bytes, authenticating: Span(), message: &message, tag: &tag)
    var sealed: [UInt8] = []
    sealed.append(salt)
    sealed += text
    sealed.append(tag.bytes)
    return sealed
  }

  /// Opens a page.
  ///
  /// - Throws: `CryptographyFailure` if another device made it, if it was changed, or if it is no page.
  package borrowing func open<Crypto: Cryptography & ~Copyable>(
    _ sealed: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> AuditPage {
    let (salt, tag) = AuditPage.overhead
    guard AuditPage.isSealedByteCount(sealed.count), let tag = AuthenticationTag(sealed.extracting(last: tag)) else {
      throw CryptographyFailure()
    }
    let key = try auditPageKey(
      from: shared, salt: sealed.extracting(first: salt), device: device, home: home, using: &cryptography)
    let ciphertext = sealed.extracting(salt..<sealed.count - 16)
    var text: [UInt8] = ciphertext.indices.map { ciphertext[$0] }
    var message = text.mutableSpan
    try cryptography.aes256GCMOpen(
      key: key, nonce: FixedBytes<12>().bytes, authenticating: Span(), message: &message, tag: tag)
    do throws(EncodingFault) { return try AuditPage(text.span) } catch { throw CryptographyFailure() }
  }
}
#endif
