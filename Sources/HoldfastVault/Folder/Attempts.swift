import HoldfastCore
import HoldfastLinux

/// The counter of a vault's attempts: the file `attempts`, which docs/vault.md describes.
///
/// It is written durably before each attempt. A missing or damaged counter is neither zero nor the limit: it has no value,
/// so that nobody gains attempts by removing it, and no damage wipes a vault.
enum Attempts: Equatable {
  /// That many attempts have begun since the last right passcode.
  case counted(Int)
  /// Passcodes are refused; that many attempts to restore the counter have begun.
  case suspended(Int)
  /// The key is being removed, or has been.
  case wiped

  static let byteCount = 66
  private static let magic = Array("holdfast-tries/1".utf8)

  func encoded(id: VaultID, host: borrowing Secret<32>) throws(CryptographyFailure) -> [UInt8] {
    var bytes = Self.magic
    bytes.append(id.bytes)
    switch self {
    case .counted(let count): bytes += [0, UInt8(count)]
    case .suspended(let count): bytes += [1, UInt8(count)]
    case .wiped: bytes += [2, 0]
    }
    let mac = try VaultMAC.compute(over: bytes, id: id, host: host)
    bytes.append(mac.bytes)
    return bytes
  }

  /// Parses a counter; nil unless it is whole and of this host.
  static func parse(
    _ bytes: [UInt8], host: borrowing Secret<32>
  ) throws(CryptographyFailure) -> (id: VaultID, attempts: Attempts)? {
    guard bytes.count == byteCount, bytes.starts(with: magic) else { return nil }
    let id = VaultID(bytes.span.extracting(16..<32))!
    guard try VaultMAC.isRight(bytes, id: id, host: host), bytes[33] <= 100 else { return nil }
    switch (bytes[32], bytes[33]) {
    case (0, let count): return (id, .counted(Int(count)))
    case (1, let count): return (id, .suspended(Int(count)))
    case (2, 0): return (id, .wiped)
    default: return nil
    }
  }
}
