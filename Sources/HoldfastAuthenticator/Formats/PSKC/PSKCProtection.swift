import HoldfastCore
import HoldfastOpenSSL

/// The encryption of the values in a container, with the keys to decrypt them.
///
/// Source: RFC 6030 §6.
final class PSKCProtection {
  /// The largest number of PBKDF2 iterations, which take some seconds.
  static let maximumIterationCount: UInt64 = 10_000_000

  /// The encryption key; nil if the container has none, in which case its values must be plain.
  private let key: EncryptionKey?
  /// The MAC method; nil if the container has none.
  private let mac: MACMethod?

  /// Reads the protection of a container.
  ///
  /// - Throws: `keyNeeded` or `passphraseNeeded` if the required key was not given, `unsupportedAlgorithm` for
  ///   certificates and unknown names.
  init(container: XMLElement, containerKey: borrowing ContainerKey) throws(ImportFault) {
    guard let keyElement = try container.child("EncryptionKey", in: PSKCNames.pskc) else {
      guard try container.child("MACMethod", in: PSKCNames.pskc) == nil else { throw .malformed }
      key = nil
      mac = nil
      return
    }
    let key = try EncryptionKey(keyElement, containerKey)
    mac = try container.child("MACMethod", in: PSKCNames.pskc).map { (element) throws(ImportFault) in
      try MACMethod(element, encryptionKey: key)
    }
    self.key = key
  }

  /// Decrypts an `EncryptedValue` after checking its `ValueMAC`.
  ///
  /// - Throws: `missingMAC` if the cipher requires a MAC and there is none, `wrongKey` if the MAC does not match.
  func open(_ value: XMLElement, valueMAC: XMLElement?) throws(ImportFault) -> SecretBytes {
    guard let key else { throw .malformed }
    let encrypted = try EncryptedText(value)
    if let valueMAC {
      guard let mac else { throw .malformed }
      let code = try valueMAC.base64()
      try mac.verify(code.bytes, of: encrypted)
    } else if case .aesCBC = encrypted.cipher {
      throw .missingMAC
    }
    return try key.open(encrypted)
  }
}

/// The key that encrypts a container's values.
///
/// Source: RFC 6030 §6.1 and §6.2.
private final class EncryptionKey {
  let secret: SecretBytes

  init(_ element: XMLElement, _ containerKey: borrowing ContainerKey) throws(ImportFault) {
    if let derived = try element.child("DerivedKey", in: PSKCNames.encryption11) {
      guard let method = try derived.child("KeyDerivationMethod", in: PSKCNames.encryption11) else { throw .malformed }
      let derivation = try PassphraseDerivation(method)
      switch containerKey {
      case .passphrase(let passphrase): secret = try derivation.key(passphrase: passphrase.bytes)
      default: throw .passphraseNeeded
      }
      return
    }
    guard try element.child("KeyName", in: PSKCNames.signature) != nil else { throw .unsupportedAlgorithm }
    switch containerKey {
    case .preShared(let key): secret = SecretBytes(copying: key.bytes)
    default: throw .keyNeeded
    }
  }

  func open(_ encrypted: EncryptedText) throws(ImportFault) -> SecretBytes {
    try encrypted.secret.withBytes { (value) throws(ImportFault) in
      try secret.withBytes { (key) throws(ImportFault) in try encrypted.cipher.open(value, key: key) }
    }
  }
}

/// A ciphertext with its cipher.
///
/// Source: XML Encryption §3.1.
private final class EncryptedText {
  let cipher: PSKCCipher
  let secret: SecretBytes

  init(_ element: XMLElement) throws(ImportFault) {
    guard let method = try element.child("EncryptionMethod", in: PSKCNames.encryption),
      let data = try element.child("CipherData", in: PSKCNames.encryption),
      let value = try data.child("CipherValue", in: PSKCNames.encryption)
    else { throw .malformed }
    cipher = try PSKCCipher(method.attributes["Algorithm"])
    secret = try value.base64()
  }
}

/// The MAC function and key that authenticate encrypted values.
///
/// Source: RFC 6030 §6.1.1. If there is no separate MAC key, the encryption key is used.
private final class MACMethod {
  private let function: HMAC
  private let key: SecretBytes

  init(_ element: XMLElement, encryptionKey: EncryptionKey) throws(ImportFault) {
    guard let function = PSKCNames.hmac(element.attributes["Algorithm"]) else { throw .unsupportedAlgorithm }
    self.function = function
    guard let keyElement = try element.child("MACKey", in: PSKCNames.pskc) else {
      key = encryptionKey.secret.withBytes { SecretBytes(copying: $0) }
      return
    }
    key = try encryptionKey.open(EncryptedText(keyElement))
  }

  func verify(_ code: Span<UInt8>, of encrypted: EncryptedText) throws(ImportFault) {
    guard code.count == function.byteCount else { throw .wrongKey }
    do {
      try encrypted.secret.withBytes { (message) throws(CryptographyFailure) in
        try key.withBytes { (key) throws(CryptographyFailure) in try function.verify(code, of: message, key: key) }
      }
    } catch {
      throw .wrongKey
    }
  }
}

/// The derivation of a container's key from a passphrase.
///
/// Source: RFC 6030 §6.2; RFC 8018 §5.2 and App. C. The default function is HMAC-SHA-1.
private final class PassphraseDerivation {
  private let salt: SecretBytes
  private let iterationCount: Int
  private let keyByteCount: Int
  private let function: HMAC

  init(_ method: XMLElement) throws(ImportFault) {
    guard PSKCNames.isPBKDF2(method.attributes["Algorithm"]) else { throw .unsupportedAlgorithm }
    guard let parameters = try method.child("PBKDF2-params", in: PSKCNames.derivation),
      let salt = try parameters.child("Salt", in: PSKCNames.derivation)?
        .child("Specified", in: PSKCNames.derivation)?.base64(),
      let iterations = try parameters.child("IterationCount", in: PSKCNames.derivation)?.number(),
      let keyByteCount = try parameters.child("KeyLength", in: PSKCNames.derivation)?.number()
    else { throw .malformed }
    guard salt.count >= 1, iterations >= 1 else { throw .malformed }
    guard iterations <= PSKCProtection.maximumIterationCount else { throw .tooLarge }
    guard [16, 24, 32].contains(keyByteCount) else { throw .unsupportedAlgorithm }
    let named = try parameters.child("PRF", in: PSKCNames.derivation)?.attributes["Algorithm"]
    guard let function = named == nil ? .sha1 : PSKCNames.hmac(named) else { throw .unsupportedAlgorithm }
    self.salt = salt
    iterationCount = Int(iterations)
    self.keyByteCount = Int(keyByteCount)
    self.function = function
  }

  func key(passphrase: Span<UInt8>) throws(ImportFault) -> SecretBytes {
    var key = SecretBytes(zeros: keyByteCount)
    var bytes = key.mutableBytes
    do {
      try salt.withBytes { (salt) throws(CryptographyFailure) in
        try PBKDF2.derive(
          hash: function, passphrase: passphrase, salt: salt, iterationCount: iterationCount, into: &bytes)
      }
    } catch {
      throw .wrongKey
    }
    return key
  }
}

extension XMLElement {
  /// Parses the text as a number.
  ///
  /// - Throws: `malformed` for anything else.
  package func number() throws(ImportFault) -> UInt64 {
    guard let value = UInt64(decimal: Array(try trimmedText().utf8).span) else { throw .malformed }
    return value
  }
}
