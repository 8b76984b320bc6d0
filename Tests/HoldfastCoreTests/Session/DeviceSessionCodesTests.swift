import TestSupport
import Testing

import HoldfastCore

/// Codes count as factors, must be of the token's user, and are ignored where the command needs none.
@Suite struct DeviceSessionCodesTests {
  private func device(_ factors: Factors) throws -> ExampleDevice {
    let device = try ExampleDevice()
    device.policy.rules["unlock"]?.factors = factors
    return device
  }

  private func request(otp: BoundedText<32>? = nil, seal: BoundedText<32>? = nil) -> Request {
    var request = Request(command: "unlock")
    request.codes[.otp] = otp.map { UserCode(user: $0, code: "123456") }
    request.codes[.seal] = seal.map { UserCode(user: $0, code: "654321") }
    return request
  }

  @Test func `a code that is required must be there, and is then looked at`() throws {
    let otp = try device([.device, .otp])
    #expect(try otp.status(of: ExampleToken(), request: request()) == .factorMissing)
    #expect(try otp.status(of: ExampleToken(), request: request(seal: "ann")) == .factorMissing)
    #expect(try otp.status(of: ExampleToken(), request: request(otp: "ann")) == .otpRejected)
    let seal = try device([.device, .seal])
    #expect(try seal.status(of: ExampleToken(), request: request()) == .factorMissing)
    #expect(try seal.status(of: ExampleToken(), request: request(otp: "ann")) == .factorMissing)
    #expect(try seal.status(of: ExampleToken(), request: request(seal: "ann")) == .sealRejected)
    #expect(otp.lock.performed.isEmpty && seal.lock.performed.isEmpty)
  }

  @Test func `a code of another user than the token's is refused`() throws {
    let otp = try device([.device, .otp])
    let token = ExampleToken { $0.user = "ann" }
    #expect(try otp.status(of: token, request: request(otp: "bob")) == .commandRefused)
    #expect(try otp.status(of: token, request: request(otp: "ann", seal: "bob")) == .otpRejected)
    #expect(try otp.status(of: ExampleToken(), request: request(otp: "bob")) == .otpRejected)
    let seal = try device([.device, .seal])
    #expect(try seal.status(of: token, request: request(seal: "bob")) == .commandRefused)
    #expect(try seal.status(of: token, request: request(otp: "bob", seal: "ann")) == .sealRejected)
  }

  @Test func `a token that came by reference keeps its user`() throws {
    let device = try device([.device])
    let token = try ExampleToken { $0.user = "ann" }.token()
    var prover = try Prover.with(token)
    #expect(try device.round(&prover).response.status == .accepted)
    device.policy.rules["unlock"]?.factors = [.device, .otp]
    var again = try Prover.with(token, request: request(otp: "bob"), remembered: true)
    #expect(try device.round(&again).response.status == .commandRefused)
  }

  @Test func `a code that is not required is ignored, whoever's it is`() throws {
    let device = try device([.device])
    let token = ExampleToken { $0.user = "ann" }
    #expect(try device.status(of: token, request: request(otp: "bob", seal: "eve")) == .accepted)
  }
}
