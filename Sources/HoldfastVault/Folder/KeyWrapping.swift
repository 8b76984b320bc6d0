import HoldfastCore
import HoldfastOpenSSL

/// The wrapping of a vault's key. The host's secret takes part in each, so a copy of the folder is useless on another host.
///
/// The key that wraps is used once, because its salt is random, so the nonce of AES-256-GCM is zero. The vault's key check,
/// which is compared after the unwrapping, commits to the key.
enum KeyWrapping {
  private static let nonce = [UInt8](repeating: 0, count: 12)

  /// Returns the public value by which a key is recognised: `HKDF(ikm: key, salt: id, info: "holdfast/1 vault key check")`.
  static func check(of key: borrowing SecretBytes, id: VaultID) throws(CryptographyFailure) -> FixedBytes<32> {
    let check = try derivedBytes(
      from: key.bytes, salt: id.bytes, info: Array("holdfast/1 vault key check".utf8), count: 32)
    return FixedBytes(check.bytes)!
  }

  /// Wraps a key with a passcode. It takes as long as `cost` says.
  static func slot(
    _ key: borrowing SecretBytes, id: VaultID, passcode: borrowing Passcode, attemptLimit: Int, cost: ScryptCost,
    salt: FixedBytes<32>, host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> VaultRecord.PasscodeSlot {
    let wrapping = try wrappingKey(
      passcode, id: id, attemptLimit: attemptLimit, cost: cost, salt: salt, host: host)
    return VaultRecord.PasscodeSlot(
      attemptLimit: attemptLimit, cost: cost, salt: salt, wrapped: try wrap(key, under: wrapping))
  }

  /// Wraps a key with the bytes of a key file.
  static func slot(
    _ key: borrowing SecretBytes, id: VaultID, keyFile: borrowing SecretBytes, salt: FixedBytes<32>,
    host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> VaultRecord.KeyFileSlot {
    VaultRecord.KeyFileSlot(
      salt: salt, wrapped: try wrap(key, under: try wrappingKey(keyFile, id: id, salt: salt, host: host)))
  }

  /// Unwraps the key with a passcode; nil if the passcode is wrong.
  static func key(
    of record: VaultRecord, _ slot: VaultRecord.PasscodeSlot, passcode: borrowing Passcode, host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> SecretBytes? {
    let wrapping = try wrappingKey(
      passcode, id: record.id, attemptLimit: slot.attemptLimit, cost: slot.cost, salt: slot.salt, host: host)
    return try unwrap(slot.wrapped, of: record, under: wrapping)
  }

  /// Unwraps the key with the bytes of a key file; nil if they are not this vault's.
  static func key(
    of record: VaultRecord, _ slot: VaultRecord.KeyFileSlot, keyFile: borrowing SecretBytes, host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> SecretBytes? {
    let wrapping = try wrappingKey(keyFile, id: record.id, salt: slot.salt, host: host)
    return try unwrap(slot.wrapped, of: record, under: wrapping)
  }

  private static func wrappingKey(
    _ passcode: borrowing Passcode, id: VaultID, attemptLimit: Int, cost: ScryptCost, salt: FixedBytes<32>,
    host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> Secret<32> {
    var slow = SecretBytes(zeros: 32)
    var output = slow.mutableBytes
    try Scrypt.derive(password: passcode.bytes.bytes, salt: salt.bytes, cost: cost, into: &output)
    var info = Array("holdfast/1 vault passcode".utf8) + [0]
    info.append(id.bytes)
    info += [attemptLimit, cost.logarithm, cost.blockSize, cost.parallelization].map(UInt8.init)
    return try combined(slow, host, salt: salt, info: info)
  }

  private static func wrappingKey(
    _ keyFile: borrowing SecretBytes, id: VaultID, salt: FixedBytes<32>, host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> Secret<32> {
    var info = Array("holdfast/1 vault key file".utf8) + [0]
    info.append(id.bytes)
    return try combined(keyFile, host, salt: salt, info: info)
  }

  /// Derives a key from 32 secret bytes, followed by the host's secret.
  private static func combined(
    _ secret: borrowing SecretBytes, _ host: borrowing Secret<32>, salt: FixedBytes<32>, info: [UInt8]
  ) throws(CryptographyFailure) -> Secret<32> {
    var input = SecretBuffer(capacity: 64)
    input.append(secret.bytes)
    host.withBytes { input.append($0) }
    let derived = try derivedBytes(from: input.bytes, salt: salt.bytes, info: info, count: 32)
    guard let key = Secret<32>(copying: derived.bytes) else { throw CryptographyFailure() }
    return key
  }

  private static func wrap(
    _ key: borrowing SecretBytes, under wrapping: borrowing Secret<32>
  ) throws(CryptographyFailure) -> FixedBytes<48> {
    var copy = SecretBytes(copying: key.bytes)
    var message = copy.mutableBytes
    var tag = AuthenticationTag()
    var cryptography = OpenSSLCryptography()
    try cryptography.aes256GCMSeal(
      key: wrapping, nonce: nonce.span, authenticating: Span(), message: &message, tag: &tag)
    var wrapped: [UInt8] = []
    wrapped.append(copy.bytes)
    wrapped.append(tag.bytes)
    return FixedBytes(wrapped.span)!
  }

  private static func unwrap(
    _ wrapped: FixedBytes<48>, of record: VaultRecord, under wrapping: borrowing Secret<32>
  ) throws(CryptographyFailure) -> SecretBytes? {
    var key = SecretBytes(copying: wrapped.bytes.extracting(first: 32))
    let tag = AuthenticationTag(wrapped.bytes.extracting(last: 16))!
    var message = key.mutableBytes
    // A failure of libcrypto must not look like a wrong passcode, which would cost an attempt.
    let isOpened = try wrapping.withBytes { (wrapping) throws(CryptographyFailure) in
      try AESGCM.opens(key: wrapping, nonce: nonce.span, authenticating: Span(), message: &message, tag: tag)
    }
    guard isOpened else { return nil }
    guard constantTimeEqual(try check(of: key, id: record.id).bytes, record.keyCheck.bytes) else { return nil }
    return key
  }
}
