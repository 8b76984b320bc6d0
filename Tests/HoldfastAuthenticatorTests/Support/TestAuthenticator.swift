import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport

import HoldfastAuthenticator

/// Why an action fails; nil when it does not.
func fault(_ body: () throws -> Void) -> AuthenticatorFault? {
  do {
    try body()
    return nil
  } catch { return error as? AuthenticatorFault }
}

extension ScryptCost {
  /// Hardly any: what a guess costs is not what most tests are about.
  static var test: ScryptCost { ScryptCost(logarithm: 1, blockSize: 1, parallelization: 1)! }
}

extension PIN {
  init(_ digits: String) throws(PINFault) {
    try self.init(Array(digits.utf8).span)
  }
}

func pin(_ digits: String) throws -> ProtectionSecret {
  .pin(try PIN(digits))
}

func key(_ byte: UInt8, count: Int = 32) -> ProtectionSecret {
  .key(ExternalKey([UInt8](repeating: byte, count: count).span)!)
}

/// The secret of RFC 4226 appendix D and RFC 6238 appendix B.
let rfcSecret = Array("12345678901234567890".utf8)
/// Random, as secrets are.
let randomSecret: [UInt8] = [
  0x5b, 0xe1, 0x02, 0x9d, 0x77, 0x4c, 0xb0, 0x3a, 0xf8, 0x16, 0x88, 0xd5, 0x21, 0x6e, 0x9a, 0xc3, 0x0f, 0x72, 0xe4,
  0xbd,
]

extension NewRecord {
  init(
    _ user: String = "alice", _ index: Int = 1, _ purpose: RecordPurpose = .otp,
    _ method: CodeMethod = .hotp(.sha1, .six), next: UInt64 = 0, secret: [UInt8] = rfcSecret, window: UInt64? = nil,
    sealFieldByteLimit: Int? = nil
  ) {
    self.init(
      index: index, purpose: purpose,
      credential: Credential(user: user, method: method, nextCounter: next, secret: SecretBytes(copying: secret.span)),
      lookAheadWindow: window, sealFieldByteLimit: sealFieldByteLimit)
  }
}

extension CodeMethod {
  static var totp: CodeMethod { .totp(.sha1, .eight, periodSeconds: 30) }
  static var usualSeal: CodeMethod { .ocra(.usualSeal) }
  static func ocra(_ suite: String) -> CodeMethod { .ocra(OCRASuite(suite)!) }
}

/// An authenticator in a folder of a test's own.
struct TestAuthenticator {
  let place: TemporaryFolder
  let authenticator: Authenticator

  init(in place: TemporaryFolder? = nil, cost: ScryptCost = .test) throws {
    self.place = try place ?? TemporaryFolder()
    authenticator = try AuthenticatorFolder.create(at: self.place.file("a"), cost: cost)
  }

  var path: String { place.file("a") }

  /// The same folder, as another process has it.
  func again() throws -> Authenticator { try AuthenticatorFolder.open(at: path, cost: .test) }

  func add(_ records: NewRecord..., isConfirmed: Bool = true, replacing: Bool = false) throws {
    try add(records, protection: .none, isConfirmed: isConfirmed, replacing: replacing)
  }

  func add(
    _ records: [NewRecord], protection: borrowing ProtectionSecret, isConfirmed: Bool = true, replacing: Bool = false,
    seed: UInt64 = 1
  ) throws {
    var random = TestRandom(state: seed)
    try authenticator.add(
      records, protection: protection, isConfirmed: isConfirmed, replacing: replacing, random: &random)
  }

  func code(
    _ user: String? = nil, index: Int? = nil, with protector: borrowing ProtectionSecret, at seconds: UInt64? = testTime
  ) throws -> String {
    let record = try authenticator.record(user: user, index: index, purpose: .otp)
    return try authenticator.code(for: record, with: protector, clock: TestClock(seconds: seconds)).text
  }

  func code(_ user: String? = nil, index: Int? = nil, at seconds: UInt64? = testTime) throws -> String {
    try code(user, index: index, with: .none, at: seconds)
  }

  /// The contents of the folder's files.
  func fileContents() -> [UInt8] {
    FileNames.all.flatMap { (try? place.contents("a/" + $0)) ?? [] }
  }
}

extension RecordTables {
  /// The database of an authenticator in a folder.
  var database: Database { (self as! AuthenticatorTables).database }
}

enum FileNames {
  static let all = [AuthenticatorFolder.fileName, AuthenticatorFolder.fileName + "-wal"]
}

extension [UInt8] {
  /// Whether `part` stands anywhere in it.
  func contains(bytes part: [UInt8]) -> Bool {
    guard let first = part.first, count >= part.count else { return false }
    return indices.contains { start in
      self[start] == first && start + part.count <= count && self[start..<start + part.count].elementsEqual(part)
    }
  }
}
