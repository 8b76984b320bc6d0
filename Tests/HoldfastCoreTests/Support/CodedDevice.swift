import HoldfastOpenSSL
import TestSupport

import HoldfastCore

/// The worked example's device with one user, ann, and everything that makes her codes.
final class CodedDevice {
  let device: ExampleDevice
  let key: [UInt8]
  var token = ExampleToken { $0.expires = 2_000_000_000 }

  init(
    _ factors: Factors, otp: CodeMethod? = nil, seal: CodeMethod? = nil,
    key: String = "12345678901234567890123456789012"
  ) throws {
    device = try ExampleDevice()
    self.key = Array(key.utf8)
    device.policy.rules["unlock"]?.factors = factors
    device.policy.limits.maximumAgeSeconds = nil
    device.store.secrets = [.otp: self.key, .seal: self.key]
    var ann = UserRecord(id: 7, lastAccepted: now)
    ann.accounts[.otp] = otp.map { CodeAccount(method: $0) }
    ann.accounts[.seal] = seal.map { CodeAccount(method: $0) }
    device.store.users["ann"] = ann
  }

  var now: UInt64 {
    get { device.clock.seconds! }
    set { device.clock.seconds = newValue }
  }

  var ann: UserRecord {
    get { device.store.users["ann"]! }
    set { device.store.users["ann"] = newValue }
  }

  /// The notice of the device's last verdict.
  var retryAfterSeconds: UInt64? { device.store.rounds.last?.notice.retryAfterSeconds }

  /// Ann's one-time password at a counter or time step.
  func otp(_ position: UInt64) throws -> BoundedText<16> {
    try password(position, secret: key).code
  }

  /// Her one-time password when her clock is `seconds` ahead of the device's.
  func otp(ahead seconds: Int64) throws -> BoundedText<16> {
    try otp(UInt64(Int64(now) + seconds) / 30)
  }

  /// Her seal over a command, at a counter or time step where the suite has one.
  func seal(
    _ position: UInt64 = 0, _ command: BoundedText<32> = "unlock", _ parameters: [BoundedText<64>] = [],
    challenge: [UInt8] = []
  ) throws -> BoundedText<16> {
    try TestSupport.seal(
      ann.accounts[.seal]!.method, position, challenge: challenge, command, parameters, secret: key
    ).code
  }

  func request(
    otp: BoundedText<16>? = nil, seal: BoundedText<16>? = nil, parameters: [BoundedText<64>]? = nil,
    user: BoundedText<32> = "ann", sealUser: BoundedText<32>? = nil
  ) throws -> Request {
    var request = Request(command: "unlock")
    for parameter in parameters ?? [] { try request.append(parameter: parameter) }
    request.codes[.otp] = otp.map { UserCode(user: user, code: $0) }
    request.codes[.seal] = seal.map { UserCode(user: sealUser ?? user, code: $0) }
    return request
  }

  /// The status of a round with these codes.
  func ask(
    otp: BoundedText<16>? = nil, seal: BoundedText<16>? = nil, parameters: [BoundedText<64>]? = nil,
    user: BoundedText<32> = "ann", sealUser: BoundedText<32>? = nil
  ) throws -> Status {
    try device.status(
      of: token, request: try request(otp: otp, seal: seal, parameters: parameters, user: user, sealUser: sealUser))
  }

  /// Once ann may try again.
  func waitOutLockout() { now = max(now, ann.lockedUntil) }
}
