import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

func encoded(_ policy: borrowing FirmwarePolicy) -> [UInt8] {
  var bytes: [UInt8] = []
  policy.encode(into: &bytes)
  return bytes
}

@Suite struct FirmwarePolicyTests {
  private func read(_ encoded: [UInt8]) throws(EncodingFault) -> FirmwarePolicy {
    var reader = CBORReader(encoded.span)
    let policy = try FirmwarePolicy.decode(&reader)
    try reader.finish()
    return policy
  }

  @Test func `sixteen commands fit, with all that can be said of them, and not one more`() throws {
    let limits = TokenLimits(
      generationFloor: maximumInteger,
      minimumVersion: AppVersion(major: maximumInteger, minor: maximumInteger, patch: maximumInteger),
      maximumAgeSeconds: maximumInteger)
    var policy = FirmwarePolicy(
      limits: limits, acceptsUnsigned: true, acceptsMAC: true, maximumIssueAdvanceSeconds: maximumInteger,
      codeLimits: CodeLimits(counterLookAhead: 100, clockToleranceSeconds: 600, sealParameterLength: 64))
    for index in 0..<16 {
      let name = try #require(BoundedText<32>("a command with a name of 32 by\(10 + index)"))
      let allowed = policy.allow(name, CommandRule(factors: .all, limits: limits, allowsCompatibility: true))
      #expect(allowed)
    }
    let more = policy.allow(BoundedText("one more"), CommandRule(factors: .device))
    #expect(!more)
    let again = try read(encoded(policy))
    #expect(encoded(again) == encoded(policy))
    let count = again.commandCount
    #expect(count == 16)
    for index in 0..<16 {
      let (one, other) = (again.command(index), policy.command(index))
      #expect(one == other)
    }
    var body = ByteBuffer<4096>()
    try policy.encode(into: &body)
  }

  @Test func `a command is named once, and what is not named has no rule`() {
    var policy = FirmwarePolicy.forLock()
    let count = policy.commandCount
    let isTwice = policy.allow(BoundedText("unlock"), CommandRule(factors: []))
    let countAfter = policy.commandCount
    #expect(!isTwice && countAfter == count)
    let (unlock, safe) = (policy.rule(for: BoundedText("unlock")), policy.rule(for: BoundedText("open-safe")))
    #expect(unlock?.factors == [.integrity, .device] && safe?.factors == [.device, .otp, .seal])
    let (almost, none) = (policy.rule(for: BoundedText("unloc")), policy.rule(for: BoundedText()))
    #expect(almost == nil && none == nil)
  }

  @Test func `no key introduces others to a small device`() {
    let policy = FirmwarePolicy.forLock()
    let mayIntroduce = policy.mayIntroduce(KeyID(filledWith: 1))
    #expect(!mayIntroduce)
  }

  @Test func `the hint in M1 is what every command needs, and nothing where there is none`() {
    var policy = FirmwarePolicy(
      limits: TokenLimits(), acceptsUnsigned: false, acceptsMAC: false, maximumIssueAdvanceSeconds: 1,
      codeLimits: CodeLimits())
    let nothing = policy.commonFactors
    #expect(nothing == [])
    _ = policy.allow(BoundedText("a"), CommandRule(factors: [.device, .otp]))
    _ = policy.allow(BoundedText("b"), CommandRule(factors: [.device, .seal]))
    let common = policy.commonFactors
    #expect(common == .device)
  }

  @Test func `numbers out of range, switches that are neither and unknown factors are refused`() throws {
    let right: [UInt64] = [0, 1, 10, 30, 16, 3, 0]
    func policy(_ numbers: [UInt64]) -> [UInt8] {
      var bytes: [UInt8] = []
      func appendLimits() {
        bytes.appendCBOR(array: 3)
        bytes.appendCBOR(unsigned: 0)
        bytes.appendCBOR(array: 3)
        for _ in 0..<3 { bytes.appendCBOR(unsigned: 0) }
        bytes.appendCBORNull()
      }
      bytes.appendCBOR(array: 6)
      bytes.appendCBOR(unsigned: numbers[0])
      bytes.appendCBOR(unsigned: 0)
      bytes.appendCBOR(unsigned: numbers[1])
      appendLimits()
      bytes.appendCBOR(array: 3)
      for number in numbers[2..<5] { bytes.appendCBOR(unsigned: number) }
      bytes.appendCBOR(array: 1)
      bytes.appendCBOR(array: 4)
      bytes.appendCBOR(text: "go")
      bytes.appendCBOR(unsigned: numbers[5])
      appendLimits()
      bytes.appendCBOR(unsigned: numbers[6])
      return bytes
    }
    let count = try read(policy(right)).commandCount
    #expect(count == 1)
    let wrong: [(Int, [UInt64])] = [
      (0, [2]), (2, [0, 101, maximumInteger]), (3, [0, 601]), (4, [0, 65, 1 << 31, 1 << 32]), (5, [16, 256, 259]),
      (6, [2]),
    ]
    for (index, values) in wrong {
      for value in values {
        var numbers = right
        numbers[index] = value
        #expect(throws: EncodingFault.unexpected, "\(index): \(value)") { _ = try read(policy(numbers)) }
      }
    }
  }
}
