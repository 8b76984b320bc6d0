import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A passcode of a vault, exactly the bytes that its user typed. It is wiped when it goes out of scope.
public struct Passcode: ~Copyable, Sendable {
  /// The byte counts that a passcode may have.
  public static let byteCounts = 6...256

  let bytes: SecretBytes

  /// Copies 6 to 256 bytes, usually UTF-8.
  ///
  /// - Parameter bytes: The passcode, without the end of its line.
  /// - Throws: ``VaultFault/passcodeLength``. Timing reveals only the byte count.
  public init(_ bytes: Span<UInt8>) throws(VaultFault) {
    guard Self.byteCounts.contains(bytes.count) else { throw .passcodeLength }
    self.bytes = SecretBytes(copying: bytes)
  }

  /// Returns whether both passcodes are equal. Timing reveals only the result and the byte counts.
  package borrowing func isSame(as other: borrowing Passcode) -> Bool {
    constantTimeEqual(bytes.bytes, other.bytes.bytes)
  }
}

/// A file of 32 random bytes that unlocks a vault.
package enum KeyFile {
  package static let byteCount = 32

  /// Creates the file at a free path, with mode 0600. It is on the disk when this returns.
  ///
  /// - Throws: ``VaultFault/file(_:)``, also if the path is taken; ``VaultFault/cryptography``.
  package static func create(at path: String, environment: VaultEnvironment = .system) throws(VaultFault) {
    let key = try environment.freshKey()
    do throws(FileError) { try Files.writeFileAtomically(key.bytes, at: path, overwrite: false) } catch {
      throw .file(error)
    }
  }

  /// Reads the file, which must belong to this user and be closed to others.
  static func read(_ path: String) throws(VaultFault) -> SecretBytes {
    let bytes: SecretBytes
    do throws(FileError) {
      bytes = try Files.readSecretFile(at: path, limit: 64) { SecretBytes(copying: $0) }
    } catch {
      guard error.kind == .tooLarge else { throw .file(error) }
      throw .keyFileLength(path: path)
    }
    guard bytes.count == byteCount else { throw .keyFileLength(path: path) }
    return bytes
  }
}
