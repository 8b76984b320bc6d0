import HoldfastCore
import HoldfastDevice
import TestSupport
import Testing

@Suite struct CodePolicyTests {
  private func limits(_ codes: String) throws -> CodeLimits {
    try DevicePolicy(json: Array(#"{"version": 1, "codes": \#(codes), "commands": {}}"#.utf8)).codeLimits
  }

  @Test func `what a policy does not say of codes is as usual`() throws {
    #expect(try limits("{}") == CodeLimits())
    #expect(DevicePolicy.forSimulatedLock.codeLimits == CodeLimits())
    #expect(CodeLimits() == CodeLimits(counterLookAhead: 10, clockToleranceSeconds: 30, sealParameterLength: 16))
  }

  @Test func `limits of codes are read, and written as they are read`() throws {
    for codes in [
      CodeLimits(counterLookAhead: 1, clockToleranceSeconds: 1, sealParameterLength: 1),
      CodeLimits(counterLookAhead: 100, clockToleranceSeconds: 600, sealParameterLength: 64),
    ] {
      var policy = DevicePolicy.forSimulatedLock
      policy.codeLimits = codes
      #expect(try DevicePolicy(json: policy.json()) == policy)
    }
    #expect(try limits(#"{"counter_look_ahead": 7}"#) == CodeLimits(counterLookAhead: 7))
  }

  @Test(arguments: [
    "[]", "null", "1", #"{"other": 1}"#, #"{"counter_look_ahead": 0}"#, #"{"counter_look_ahead": 101}"#,
    #"{"counter_look_ahead": "7"}"#, #"{"counter_look_ahead": null}"#, #"{"counter_look_ahead": 1.5}"#,
    #"{"counter_look_ahead": -1}"#, #"{"clock_tolerance_seconds": 0}"#, #"{"clock_tolerance_seconds": 601}"#,
    #"{"clock_tolerance_seconds": true}"#, #"{"seal_parameter_length": 0}"#, #"{"seal_parameter_length": 65}"#,
    #"{"seal_parameter_length": 9007199254740992}"#, #"{"seal_parameter_length": 18446744073709551616}"#,
    #"{"counter_look_ahead": 1, "counter_look_ahead": 2}"#,
  ])
  func `limits of codes that are none are refused`(codes: String) {
    #expect(throws: PolicyFault.self) { _ = try limits(codes) }
  }
}
