import HoldfastCore
import HoldfastFirmware
import HoldfastOpenSSL

/// A small device's identity and flash, as its owner provisioned them. It trusts some issuers. All keys are the same each time, so that
/// a flash is, too.
package final class TestFirmware {
  package let flash = TestFlash()
  package let clock: TestClock
  package let deviceID = DeviceID(filledWith: 0xd1)
  package let issuers: [TestIssuer]
  package let policy: () -> FirmwarePolicy
  package let point: P256Point
  package let groups: [BoundedText<32>]
  /// Whether the first issuer is the home of the audit log, and refuses commands rather than lose entries; nil if there is no home.
  package let homeRefuses: Bool?
  /// The home's key for agreement.
  private var agreement: P256PrivateKey

  package init(
    policy: @autoclosure @escaping () -> FirmwarePolicy = .forLock(), issuerCount: Int = 1,
    clock: TestClock = TestClock(), floor: UInt64 = testTime, groups: [BoundedText<32>] = [], homeRefuses: Bool? = nil
  ) throws {
    (self.groups, self.homeRefuses) = (groups, homeRefuses)
    agreement = try P256PrivateKey(scalar: secret([UInt8](repeating: 0x43, count: 32)))
    self.clock = clock
    self.policy = policy
    issuers = try (0..<issuerCount).map { try TestIssuer(scalar: [UInt8](repeating: UInt8($0) + 1, count: 32)) }
    point = try P256PrivateKey(scalar: Self.scalar()).publicPoint
    var cryptography = OpenSSLCryptography()
    var powered = flash.powered()
    try provision().write(into: &powered, using: &cryptography)
    _ = try FlashStore.create(in: powered, clockFloor: floor, using: OpenSSLCryptography())
  }

  package func provision() throws -> Provision {
    Provision(
      deviceID: deviceID, scalar: Self.scalar(), publicPoint: point, issuers: try trust(), policy: policy(),
      groups: groups, home: try home())
  }

  /// Returns the policy, as a device has it.
  package func rules() throws -> FirmwarePolicy {
    var policy = policy()
    policy.auditHome = try home()?.keyID
    return policy
  }

  /// Returns the home of the audit log; nil if there is none.
  package func home(announced: Bool = true) throws -> ProvisionedHome? {
    guard let homeRefuses else { return nil }
    return ProvisionedHome(
      keyID: try issuers[0].keyID(), refusesWhenFull: homeRefuses,
      agreementKey: announced ? agreement.publicPoint : nil)
  }

  /// Opens a page of the audit log, as its home does.
  package func open(page sealed: [UInt8]) throws -> AuditPage {
    var shared = Secret<32>()
    try agreement.agree(with: point, into: &shared)
    let secret = AuditPageSecret(shared, device: deviceID, home: try issuers[0].keyID())
    var cryptography = OpenSSLCryptography()
    return try secret.open(sealed.span, using: &cryptography)
  }

  /// Returns the home's receipt for the entries up to `chain`.
  package func receipt(
    _ chain: AuditChain, for device: DeviceID? = nil, by issuer: TestIssuer? = nil
  ) throws -> [UInt8] {
    try (issuer ?? issuers[0]).receipt(AuditReceipt.claims(device ?? deviceID, chain))
  }

  private func trust() throws -> IssuerTable {
    var table = IssuerTable()
    for issuer in issuers {
      guard table.append(try issuer.keyID(), .signing(issuer.point)) else { throw CryptographyFailure() }
    }
    return table
  }

  /// 32 bytes of 0x42.
  package static func scalar() -> Secret<32> { secret([UInt8](repeating: 0x42, count: 32)) }

  /// Returns a prover with a token from one of the issuers, or from a stranger.
  package func prover(
    from issuer: Int = 0, stranger: TestIssuer? = nil, isSigned: Bool = true,
    _ change: (inout TestClaims) -> Void = { _ in }
  ) throws -> TestProver {
    var claims = TestClaims(for: deviceID)
    change(&claims)
    return TestProver(
      claims, token: try (stranger ?? issuers[issuer]).token(claims, to: point, flaws: TokenFlaws(isSigned: isSigned)))
  }

  package enum Environment<Hardware: Board, Machine: Actuator>: FirmwareEnvironment {
    package typealias Flash = SimulatedFlash
    package typealias Crypto = OpenSSLCryptography
    package typealias Key = P256PrivateKey
    package typealias Random = TestRandom
    package typealias Time = TestClock
  }
  package typealias Device<Line: Board, Machine: Actuator> = FirmwareDevice<Environment<Line, Machine>>

  /// Starts the device as a board would, with power for a number of flash words.
  package func start<Line: Board, Machine: Actuator>(
    _ board: Line, _ machine: Machine, wordCount: Int? = nil
  ) throws(FirmwareFault) -> Device<Line, Machine> {
    var cryptography = OpenSSLCryptography()
    let parts = try FirmwareParts.read(
      flash.powered(wordCount: wordCount), using: &cryptography,
      key: { (scalar) throws(CryptographyFailure) in try P256PrivateKey(scalar: scalar) },
      random: { (_, bootCount) in TestRandom(state: bootCount) })
    var device = Device(
      parts, board: board, machine: machine, clock: clock, cryptography: { OpenSSLCryptography() })
    try device.start()
    return device
  }

  /// Starts the device and serves the line until it ends.
  package func serve(_ line: TestLine, _ machine: CountingMachine = CountingMachine(), wordCount: Int? = nil) throws {
    var device = try start(line, machine, wordCount: wordCount)
    device.run()
  }
}

extension FirmwarePolicy {
  /// `status` needs only the factor device, `lock` a seal, `configure` a one-time password, `unlock` both measurements.
  package static func forLock(
    acceptsUnsigned: Bool = false, limits: TokenLimits = TokenLimits(), tolerance: UInt64 = 30
  ) -> FirmwarePolicy {
    var policy = FirmwarePolicy(
      limits: limits, acceptsUnsigned: acceptsUnsigned, acceptsMAC: false, maximumIssueAdvanceSeconds: 400 * 86_400,
      codeLimits: CodeLimits(clockToleranceSeconds: tolerance))
    let rules: [(StaticString, Factors, Bool)] = [
      ("unlock", [.integrity, .device], true), ("status", .device, false), ("configure", [.device, .otp], false),
      ("lock", [.device, .seal], false), ("open-safe", [.device, .otp, .seal], false), ("user-sync", .device, false),
      ("host-code", .device, false),
    ]
    for (name, factors, isOpen) in rules {
      _ = policy.allow(
        BoundedText(name), CommandRule(factors: factors, limits: limits, allowsCompatibility: isOpen))
    }
    return policy
  }
}

/// An actuator that records its commands and answers `unlock` with `unlocked`.
package final class CountingMachine: Actuator {
  package var performed: [BoundedText<32>] = []
  package var fails = false

  package init() {}

  package func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    performed.append(request.command)
    let answer = Array("\(request.command)ed".utf8)
    do throws(EncodingFault) { try result.append(answer.span) } catch { throw ActuatorFailure() }
    if fails { throw ActuatorFailure() }
  }
}
