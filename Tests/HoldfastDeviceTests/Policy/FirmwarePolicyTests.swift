import HoldfastCore
import HoldfastFirmware
import Testing

import HoldfastDevice

/// A policy in flash is the owner's, to the last number.
@Suite struct FirmwarePolicyTests {
  private func policy(commandCount: Int) -> DevicePolicy {
    var policy = DevicePolicy(
      limits: TokenLimits(
        generationFloor: maximumInteger, minimumVersion: AppVersion(major: maximumInteger, minor: 2, patch: 3),
        maximumAgeSeconds: 0),
      acceptsUnsigned: true, acceptsMAC: true, maximumIssueAdvanceDays: 36_500,
      codeLimits: CodeLimits(counterLookAhead: 100, clockToleranceSeconds: 1, sealParameterLength: 64))
    for number in 0..<commandCount {
      policy.commands[BoundedText("a command of 32 bytes, number \(10 + number)")!] = CommandRule(
        factors: Factors(rawValue: UInt8(number) & Factors.all.rawValue),
        limits: TokenLimits(
          generationFloor: UInt64(number), minimumVersion: AppVersion(major: 1, minor: maximumInteger, patch: 0),
          maximumAgeSeconds: number % 3 == 0 ? nil : UInt64(number)),
        allowsCompatibility: number % 2 == 0)
    }
    return policy
  }

  private func throughFlash(_ policy: DevicePolicy) -> DevicePolicy? {
    guard let small = FirmwarePolicy(policy) else { return nil }
    return DevicePolicy(small)
  }

  @Test(arguments: 0...16)
  func `it comes back as it was, also out of an image`(commandCount: Int) throws {
    let policy = policy(commandCount: commandCount)
    #expect(policy.commands.count == commandCount)
    #expect(throughFlash(policy) == policy)
    let common = FirmwarePolicy(policy)?.commonFactors
    #expect(common == policy.commonFactors)
    let test = try TestImage(policy: policy)
    try test.reopen()
    #expect(test.image.policy == policy)
  }

  @Test func `the default comes back, and that which denies everything`() throws {
    for policy in [DevicePolicy.forSimulatedLock, .denyAll] {
      #expect(throughFlash(policy) == policy)
    }
  }

  @Test func `the home of the audit log is the same in flash`() {
    var policy = policy(commandCount: 1)
    for home in [nil, KeyID(filledWith: 5)] {
      policy.auditRules.home = home
      let small = FirmwarePolicy(policy)?.auditHome
      #expect(small == home)
    }
  }

  @Test func `more than 16 commands are refused, and no image is made`() throws {
    #expect(throughFlash(policy(commandCount: 17)) == nil)
    #expect(throws: FirmwareImageFault.tooManyCommands) { _ = try TestImage(policy: policy(commandCount: 17)) }
  }

  @Test func `an advance that is no whole number of days is nobody's policy`() {
    let limits = TokenLimits()
    for seconds in [86_399, 86_401, 36_501 * 86_400] as [UInt64] {
      let policy = FirmwarePolicy(
        limits: limits, acceptsUnsigned: false, acceptsMAC: false, maximumIssueAdvanceSeconds: seconds,
        codeLimits: CodeLimits())
      let read = DevicePolicy(policy)
      #expect(read == nil)
    }
  }
}
