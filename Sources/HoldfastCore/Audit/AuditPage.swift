// A microcontroller's log does not go home.
#if !hasFeature(Embedded)
/// A page of a device's audit log, for the service that its policy names as the home of the log.
///
/// Its text is the deterministic CBOR array `[cut, after, head, [* entry], count, last]`, followed by zero bytes up to the next multiple of
/// 256. Source: docs/couriers.md, The audit log goes home.
package struct AuditPage: Sendable, Equatable {
  /// The number of entries that the device no longer keeps.
  package let cut: UInt64
  /// The chain before the first entry.
  package let base: AuditChain
  /// The entries, in their encoding.
  package private(set) var entries: [[UInt8]] = []
  /// The chain after the last entry of the whole log, when the page was made.
  package let end: AuditChain

  /// The length of the longest text, a multiple of 256 bytes: sealed and in its message, it has at most 4096 bytes.
  private static let maximumByteCount = 15 * paddingByteCount
  private static let paddingByteCount = 256
  /// The salt before the ciphertext, and the tag after it, in bytes.
  fileprivate static let overhead = (salt: 16, tag: 16)
  /// The length of the longest sealed page, in bytes.
  package static let maximumSealedByteCount = maximumByteCount + overhead.salt + overhead.tag

  /// Creates a page without entries.
  package init(after base: AuditChain, of end: AuditChain, cut: UInt64) {
    (self.cut, self.base, self.end) = (cut, base, end)
  }

  /// Adds an entry, unless it does not fit any more. Returns whether it did.
  package mutating func append(_ entry: [UInt8]) -> Bool {
    entries.append(entry)
    guard encodedWithoutPadding().count <= Self.maximumByteCount else {
      entries.removeLast()
      return false
    }
    return true
  }

  /// Returns whether a sealed page can have this length.
  package static func isSealedByteCount(_ count: Int) -> Bool {
    let text = count - overhead.salt - overhead.tag
    return text > 0 && text <= maximumByteCount && text % paddingByteCount == 0
  }

  /// Decodes the text of a page.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure, for padding other than zeros, and for
  ///   more entries than the log has.
  package init(_ text: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(text)
    try reader.array(of: 6)
    cut = try reader.unsigned()
    base = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
    for _ in 0..<(try reader.arrayHead()) {
      let entry = try reader.byteString()
      entries.append(entry.indices.map { entry[$0] })
    }
    end = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
    guard end.count <= maximumInteger, cut <= base.count, base.count <= end.count,
      UInt64(entries.count) <= end.count - base.count
    else {
      throw .unexpected
    }
    guard text.count == encoded().count else { throw .unexpected }
    for index in reader.position..<text.count where text[index] != 0 { throw .unexpected }
  }

  /// Returns the text.
  func encoded() -> [UInt8] {
    var text = encodedWithoutPadding()
    let rest = text.count % Self.paddingByteCount
    if rest > 0 { text += [UInt8](repeating: 0, count: Self.paddingByteCount - rest) }
    return text
  }

  private func encodedWithoutPadding() -> [UInt8] {
    var text: [UInt8] = []
    text.appendCBOR(array: 6)
    text.appendCBOR(unsigned: cut)
    text.appendCBOR(unsigned: base.count)
    text.appendCBOR(bytes: base.head.bytes)
    text.appendCBOR(array: entries.count)
    for entry in entries { text.appendCBOR(bytes: entry.span) }
    text.appendCBOR(unsigned: end.count)
    text.appendCBOR(bytes: end.head.bytes)
    return text
  }
}

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
    let salt = try salt(for: text.span, random, using: &cryptography)
    let key = try key(salt: salt.bytes, using: &cryptography)
    var tag = AuthenticationTag()
    var message = text.mutableSpan
    try cryptography.aes256GCMSeal(
      key: key, nonce: FixedBytes<12>().bytes, authenticating: Span(), message: &message, tag: &tag)
    var sealed: [UInt8] = []
    sealed.append(salt.bytes)
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
    let key = try key(salt: sealed.extracting(first: salt), using: &cryptography)
    let ciphertext = sealed.extracting(salt..<sealed.count - 16)
    var text: [UInt8] = ciphertext.indices.map { ciphertext[$0] }
    var message = text.mutableSpan
    try cryptography.aes256GCMOpen(
      key: key, nonce: FixedBytes<12>().bytes, authenticating: Span(), message: &message, tag: tag)
    do throws(EncodingFault) { return try AuditPage(text.span) } catch { throw CryptographyFailure() }
  }

  /// Returns HMAC-SHA-256(shared, "holdfast/1 audit page salt" ‖ 0x00 ‖ random ‖ text)[0..<16].
  private borrowing func salt<Crypto: Cryptography & ~Copyable>(
    for text: Span<UInt8>, _ random: FixedBytes<16>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> FixedBytes<16> {
    var mac = try shared.withBytes { (shared) throws(CryptographyFailure) in try cryptography.hmacSHA256(key: shared) }
    mac.append(domain: "holdfast/1 audit page salt")
    mac.append(random.bytes)
    mac.append(text)
    let whole: MAC = try mac.finish()
    return FixedBytes<16>(whole.bytes.extracting(first: 16))!
  }

  /// Derives the key of one page: HKDF-SHA-256(shared, salt, "holdfast/1 audit page" ‖ 0x00 ‖ device ‖ home).
  private borrowing func key<Crypto: Cryptography & ~Copyable>(
    salt: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var info: [UInt8] = []
    info.append(domain: "holdfast/1 audit page")
    info.append(device.bytes)
    info.append(home.bytes)
    var key = Secret<32>()
    try shared.withBytes { (shared) throws(CryptographyFailure) in
      try key.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: shared, salt: salt, info: info.span, into: &bytes)
      }
    }
    return key
  }
}
#endif
