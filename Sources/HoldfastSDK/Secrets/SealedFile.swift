import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A file that only this installation can read: AES-256-GCM under a key that is derived from the host's secret and from a random
/// key in the account's folder, and, if it is bound to one, from a measurement of the app and its host.
///
/// The content is `1 ‖ nonce (12 bytes) ‖ ciphertext ‖ tag (16 bytes)`, and the name of the file is authenticated. The type can be
/// exchanged for another store: its callers know only ``read(boundTo:)``, ``write(_:boundTo:)`` and ``remove()``.
struct SealedFile: Sendable {
  /// The secret of this host, 32 bytes, which is kept outside the state folder.
  typealias HostSecret = @Sendable () throws -> Secret<32>

  private let folder: AccountFolder
  private let name: String
  private let hostSecret: HostSecret

  private static let version: UInt8 = 1
  private static let overhead = 1 + 12 + 16
  private static let byteLimit = (16 << 20) + overhead
  private static let info = Array("holdfast/1 sealed file".utf8) + [0]

  /// Names a file of an account's folder.
  init(_ name: String, in folder: AccountFolder, hostSecret: @escaping HostSecret) {
    (self.name, self.folder, self.hostSecret) = (name, folder, hostSecret)
  }

  /// Returns the content; nil if there is none that can be opened.
  ///
  /// - Parameter measurement: a digest of the measurement to which the content was bound; nil for none.
  func read(boundTo measurement: Digest?) -> [UInt8]? { (try? content(boundTo: measurement)) ?? nil }

  /// Returns the content; nil only if there is no file.
  ///
  /// - Throws: the error of the file, ``Unopenable``, or that of the host's secret. The file may still have a content that counts.
  func content(boundTo measurement: Digest?) throws -> [UInt8]? {
    var bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(
        at: folder.file(name), limit: Self.byteLimit, requirements: [.secret, .noSymbolicLink])
    } catch {
      guard error.kind == .notFound else { throw error }
      return nil
    }
    guard bytes.count >= Self.overhead, bytes[0] == Self.version,
      let tag = AuthenticationTag(bytes.span.extracting(last: 16))
    else { throw Unopenable() }
    let key = try key(measurement)
    let nonce = Array(bytes[1..<13])
    let label = Array(name.utf8)
    bytes.removeSubrange(..<13)
    bytes.removeLast(16)
    var cryptography = OpenSSLCryptography()
    var message = bytes.mutableSpan
    do throws(CryptographyFailure) {
      try cryptography.aes256GCMOpen(
        key: key, nonce: nonce.span, authenticating: label.span, message: &message, tag: tag)
    } catch { throw Unopenable() }
    return bytes
  }

  /// The file is damaged, or was sealed by another installation or for another measurement.
  struct Unopenable: Error {}

  /// Replaces the content.
  func write(_ content: [UInt8], boundTo measurement: Digest?) throws {
    var random = SystemRandom()
    let nonce: FixedBytes<12> = try random.fixedBytes()
    let key = try key(measurement)
    let label = Array(name.utf8)
    var sealed = content
    var tag = AuthenticationTag()
    var cryptography = OpenSSLCryptography()
    var message = sealed.mutableSpan
    try cryptography.aes256GCMSeal(
      key: key, nonce: nonce.bytes, authenticating: label.span, message: &message, tag: &tag)
    let bytes = [Self.version] + [UInt8](nonce.bytes) + sealed + [UInt8](tag.bytes)
    try Files.writeFileAtomically(bytes, at: folder.file(name), overwrite: true)
  }

  /// Removes the file, if there is one.
  func remove() throws(FileError) {
    do throws(FileError) { try Files.removeFile(at: folder.file(name)) } catch {
      guard error.kind == .notFound else { throw error }
    }
  }

  private func key(_ measurement: Digest?) throws -> Secret<32> {
    let host = try hostSecret()
    let local = try folder.sealingKey()
    var input = Secret<64>()
    input.withMutableBytes { input in
      host.withBytes { bytes in for index in 0..<32 { input[index] = bytes[index] } }
      local.withBytes { bytes in for index in 0..<32 { input[32 + index] = bytes[index] } }
    }
    var key = Secret<32>()
    let salt = measurement.map { [UInt8]($0.bytes) } ?? []
    let info = Self.info + Array(name.utf8)
    var cryptography = OpenSSLCryptography()
    try input.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
      try key.withMutableBytes { (key: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: input, salt: salt.span, info: info.span, into: &key)
      }
    }
    return key
  }
}
