import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

@testable import HoldfastCore
@testable import HoldfastDevice

let ann: BoundedText<32> = BoundedText("ann")
let bob: BoundedText<32> = BoundedText("bob")
let hotpMethod = CodeMethod.hotp(.sha1, .six)
let totpMethod = CodeMethod.totp(.sha1, .six, periodSeconds: 30)
let counterSealMethod = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:C-QH64")!)
let timeSealMethod = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QH64-T1M")!)
let challengeSealMethod = CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QH64")!)
let usersSecret = [UInt8](repeating: 0x5a, count: 32)

/// A user's one-time password at a counter or time step.
func password(_ position: UInt64, secret: [UInt8] = usersSecret, user: BoundedText<32> = ann) throws -> UserCode {
  var cryptography = OpenSSLCryptography()
  return UserCode(
    user: user,
    code: try HOTP.code(counter: position, key: secret.span, hash: .sha1, length: .six, using: &cryptography))
}

/// A user's seal over a command without parameters.
func counterSeal(
  _ counter: UInt64, _ command: String, secret: [UInt8] = usersSecret, user: BoundedText<32> = ann
) throws -> UserCode {
  var cryptography = OpenSSLCryptography()
  guard case .ocra(let suite) = counterSealMethod else { throw CryptographyFailure() }
  let digest = try sealQuestion(
    command: BoundedText(command)!, parameterCount: 0, parameter: { _ in BoundedText() }, using: &cryptography)
  let question = OCRAQuestion(digest.bytes, for: suite)!
  return UserCode(
    user: user,
    code: try OCRA.code(
      suite: suite, key: secret.span, input: OCRAInput(counter: counter, question: question), using: &cryptography))
}

extension TestDevice {
  /// `unlock` needs a one-time password, `lock` a seal.
  func requireCodes() {
    policy.commands[BoundedText("unlock")]?.factors = [.device, .otp]
    policy.commands[BoundedText("lock")]?.factors = [.device, .seal]
  }

  func add(
    _ user: BoundedText<32> = ann, otp: CodeMethod? = hotpMethod, seal: CodeMethod? = counterSealMethod,
    secret: [UInt8] = usersSecret, nextPosition: UInt64 = 0, replaces: Bool = false
  ) throws {
    try ledger.add(user, otp: otp, seal: seal, secret: secret, nextPosition: nextPosition, replaces: replaces)
  }

  /// What the ledger holds of a user.
  func record(of user: BoundedText<32> = ann) throws -> UserRecord? {
    try ledger.users().first { $0.name == user }?.record
  }

  /// The audit log's last events, the newest last.
  func lastEvents(_ count: UInt64) throws -> [AuditEvent] {
    let total = try ledger.summary().audit.count
    return try ledger.auditEntries(after: total - count, limit: count).map(\.event)
  }
}

extension OwnerLedger {
  func add(
    _ user: BoundedText<32>, otp: CodeMethod?, seal: CodeMethod?, secret: [UInt8] = usersSecret,
    nextPosition: UInt64 = 0, replaces: Bool = false
  ) throws {
    var accounts: [NewAccount] = []
    for (purpose, method) in [(CodePurpose.otp, otp), (.seal, seal)] {
      guard let method else { continue }
      let account = NewAccount(
        purpose: purpose, method: method, nextPosition: nextPosition, secret: SecretBytes(copying: secret.span))
      accounts.append(try #require(account))
    }
    try addUser(user, accounts, replaces: replaces, realClock: testTime)
  }

  /// Issues an activation code; gives its text.
  func issue(
    _ user: BoundedText<32> = ann, otp: CodeMethod? = hotpMethod, seal: CodeMethod? = counterSealMethod,
    replaces: Bool = false, realClock: UInt64? = testTime, seed: UInt64 = 1
  ) throws -> String {
    var random = TestRandom(state: seed)
    let code = try issueActivation(
      of: user, otp: otp, seal: seal, replaces: replaces, realClock: realClock, random: &random)
    return text(code)
  }

  func issueUnlocking(_ user: BoundedText<32> = ann, realClock: UInt64? = testTime, seed: UInt64 = 2) throws -> String {
    var random = TestRandom(state: seed)
    return text(try issueUnlock(of: user, realClock: realClock, random: &random))
  }

  private func text(_ code: borrowing OneUseCode) -> String {
    var bytes: [UInt8] = []
    code.write(into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// A user with one of the owner's codes, at one connection of a device.
struct TestVisitor {
  /// How the device answered last.
  private(set) var status = Status.accepted
  private(set) var secrets: [CodePurpose: [UInt8]] = [:]

  /// Goes through a whole activation or unlocking; says whether both ends took it.
  mutating func use(
    _ text: String, for purpose: OneUseCode.Purpose = .activation, at connection: TestConnection, seed: UInt64 = 3
  ) throws -> Bool {
    let bytes = Array(text.utf8)
    guard let code = OneUseCode(bytes.span) else { return false }
    var session = UserSession(
      code: code, for: purpose, cryptography: OpenSSLCryptography(), random: TestRandom(state: seed))
    var message = try connection.challenge()
    while true {
      do throws(UserFault) {
        switch try session.receive(message.span) {
        case .send: break
        case .store:
          let given: [CodePurpose: [UInt8]]? = session.withSecrets { secrets in
            [.otp: secrets.otp.withBytes { Array(copying: $0) }, .seal: secrets.seal.withBytes { Array(copying: $0) }]
          }
          secrets = given ?? [:]
          try session.confirm()
        case .done: return true
        }
      } catch {
        if case .refused(let refused) = error { status = refused }
        return false
      }
      message = connection.respond(Array(copying: session.outgoing.bytes))
    }
  }
}
