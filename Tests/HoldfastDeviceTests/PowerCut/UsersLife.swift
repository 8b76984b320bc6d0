import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// A device's life with its users, step by step.
final class UsersLife {
  let script: DeviceScript
  /// The secrets that ann was activated with last.
  private var secrets: [CodePurpose: [UInt8]] = [:]
  private var text = ""
  private var seed: UInt64 = 1
  /// The codes that were accepted so far, and must never be again.
  private(set) var spent: [SpentCode] = []
  /// Ann's next password and its counter, were she asked.
  var nextPassword: (UInt64) throws -> UserCode {
    { [secrets] in try password($0, secret: secrets[.otp] ?? usersSecret) }
  }

  init(in place: TemporaryFolder, issuers: [TestIssuer]) {
    script = DeviceScript(in: place, issuers: issuers)
  }

  var device: TestDevice { script.device }

  func open() throws -> Bool {
    try script.open()
    device.requireCodes()
    return true
  }

  func issue(_ purpose: OneUseCode.Purpose, replaces: Bool = false) throws -> Bool {
    seed += 1
    switch purpose {
    case .activation: text = try device.ledger.issue(replaces: replaces, seed: seed)
    case .unlock: text = try device.ledger.issueUnlocking(seed: seed)
    }
    return true
  }

  /// Ann uses the owner's code.
  func use(_ purpose: OneUseCode.Purpose) throws -> Bool {
    var visitor = TestVisitor()
    guard try visitor.use(text, for: purpose, at: device.connect(), seed: seed) else { return false }
    if purpose == .activation { secrets = visitor.secrets }
    spent.append(.oneUse(text, purpose))
    return true
  }

  func ask(_ counter: UInt64, _ status: Status) throws -> Bool {
    try ask(otp: try nextPassword(counter), status)
  }

  func ask(otp: UserCode, _ status: Status) throws -> Bool {
    guard try device.connect().round(device.prover(), otp: otp).status == status else { return false }
    if status == .accepted { spent.append(.otp(otp)) }
    return true
  }

  func ask(seal counter: UInt64, _ status: Status) throws -> Bool {
    let seal = try counterSeal(counter, "lock", secret: try #require(secrets[.seal]))
    guard try device.connect().round(device.prover(), "lock", seal: seal).status == status else { return false }
    if status == .accepted { spent.append(.seal(seal)) }
    return true
  }
}

/// A code that was accepted.
enum SpentCode {
  case otp(UserCode)
  case seal(UserCode)
  case oneUse(String, OneUseCode.Purpose)

  /// Whether the device takes it once more.
  func isTaken(by device: TestDevice, _ prover: TestProver) throws -> Bool {
    switch self {
    case .otp(let code): return try device.connect().round(prover, otp: code).status == .accepted
    case .seal(let code): return try device.connect().round(prover, "lock", seal: code).status == .accepted
    case .oneUse(let text, let purpose):
      var visitor = TestVisitor()
      return try visitor.use(text, for: purpose, at: device.connect())
    }
  }
}

/// One step of such a life: it returns false unless what it asked for was done.
struct UsersStep {
  let name: String
  /// Whose code it gives, if it gives one.
  let user: BoundedText<32>?
  let run: (UsersLife) throws -> Bool

  init(_ name: String, of user: BoundedText<32>? = nil, _ run: @escaping (UsersLife) throws -> Bool) {
    (self.name, self.user, self.run) = (name, user, run)
  }

  private static func owner(_ name: String, _ run: @escaping (Ledger) throws -> Void) -> UsersStep {
    UsersStep(name) {
      try run($0.device.ledger)
      return true
    }
  }

  private static var wrong: UsersStep {
    UsersStep("a wrong password", of: ann) {
      try $0.ask(otp: UserCode(user: ann, code: BoundedText("000000")), .otpRejected)
    }
  }

  static var life: [UsersStep] {
    [
      UsersStep("open") { try $0.open() },
      owner("start") { _ = try $0.start(realClock: testTime) },
      UsersStep("trust") {
        try $0.device.ledger.trust(.signing($0.script.issuers[0].point), realClock: testTime)
      },
      UsersStep("a code for ann") { try $0.issue(.activation) },
      UsersStep("ann activates") { try $0.use(.activation) },
      UsersStep("a password", of: ann) { try $0.ask(0, .accepted) },
      UsersStep("the same again", of: ann) { try $0.ask(0, .otpRejected) },
      wrong,
      UsersStep("one far off", of: ann) { try $0.ask(50, .otpRejected) },
      UsersStep("the next one", of: ann) { try $0.ask(51, .accepted) },
      UsersStep("a seal", of: ann) { try $0.ask(seal: 0, .accepted) },
      UsersStep("the same seal again", of: ann) { try $0.ask(seal: 0, .sealRejected) },
      owner("bob") { try $0.add(bob, otp: totpMethod, seal: nil) },
      UsersStep("bob's password", of: bob) { try $0.ask(otp: try password(testTime / 30, user: bob), .accepted) },
      UsersStep("bob's again", of: bob) { try $0.ask(otp: try password(testTime / 30, user: bob), .otpRejected) },
      wrong, wrong, wrong, wrong,
      UsersStep("locked out", of: ann) { try $0.ask(52, .lockedOut) },
      UsersStep("another process") { try $0.open() },
      UsersStep("still locked out", of: ann) { try $0.ask(52, .lockedOut) },
      UsersStep("a code to unlock ann") { try $0.issue(.unlock) },
      UsersStep("ann is unlocked") { try $0.use(.unlock) },
      UsersStep("a password after it", of: ann) { try $0.ask(52, .accepted) },
      owner("bob goes") { try $0.removeUser(bob, realClock: testTime) },
      UsersStep("a code that replaces ann") { try $0.issue(.activation, replaces: true) },
      UsersStep("ann activates again") { try $0.use(.activation) },
      owner("checkpoint") { try $0.checkpoint() },
      UsersStep("a new password", of: ann) { try $0.ask(0, .accepted) },
      UsersStep("one more process") { try $0.open() },
      UsersStep("the new password again", of: ann) { try $0.ask(0, .otpRejected) },
      UsersStep("the one after it", of: ann) { try $0.ask(1, .accepted) },
    ]
  }
}
