import Glibc
import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// The inputs that a work and its peers share: files of a folder, and constants.
struct Inputs {
  /// The scalar of the device's key.
  static let deviceScalar = [UInt8](repeating: 0x42, count: 32)
  /// The key of a one-time password. Source: RFC 4226 appendix D.
  static let codeKey = Array("12345678901234567890".utf8)

  /// The claims of the token.
  static var claims: TestClaims { TestClaims(for: DeviceID(filledWith: 0xd1)) }

  let folder: String
  /// A token for the device, `COSE_Encrypt` around `COSE_Sign1`.
  let token: [UInt8]
  /// The public point of the issuer that signed it.
  let issuer: P256Point

  init(in folder: String) throws {
    self.folder = folder
    token = try readFile(folder + "/token")
    issuer = fixed(try readFile(folder + "/issuer.point"))
  }

  /// The executable file that is measured; its first bytes are the header of an ELF program.
  var executable: String { folder + "/executable" }

  static func deviceKey() throws -> P256PrivateKey { try P256PrivateKey(scalar: secret(deviceScalar)) }

  static func issuerKey() throws -> TestIssuer { try TestIssuer(scalar: [UInt8](repeating: 0x17, count: 32)) }

  /// Writes the files: keys as scalar and points, the token, its claims, and executable files of 1 and 64 MiB.
  static func write(to folder: String) throws {
    let key = try deviceKey()
    let issuer = try issuerKey()
    let token = try issuer.token(claims, to: key.publicPoint)
    try save(token, folder + "/token")
    try save(Array(issuer.point), folder + "/issuer.point")
    try save(Array(key.publicPoint), folder + "/device.point")
    try save([UInt8](repeating: 0x17, count: 32), folder + "/issuer-scalar")
    try save(deviceScalar, folder + "/scalar")
    try save(claims.encoded(), folder + "/claims")
    var header: [UInt8] =
      [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1] + [UInt8](repeating: 0, count: 9) + [2, 0, 62, 0, 1, 0, 0, 0]
    header += [0, 0x10, 0x40, 0, 0, 0, 0, 0]
    for (name, count) in [("executable", 1 << 20), ("large", 64 << 20)] {
      try save(
        header + (header.count..<count).map { UInt8(truncatingIfNeeded: $0 &* 0x9e37_79b1 >> 13) }, folder + "/" + name)
    }
  }

  private static func save(_ bytes: [UInt8], _ path: String) throws {
    guard let file = unsafe fopen(path, "wb") else { throw UnreadableFile() }
    let count = unsafe bytes.withUnsafeBytes { unsafe fwrite($0.baseAddress, 1, $0.count, file) }
    guard unsafe fclose(file) == 0, count == bytes.count else { throw UnreadableFile() }
  }
}
