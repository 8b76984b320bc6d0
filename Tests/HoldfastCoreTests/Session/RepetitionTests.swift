import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// A command is carried out once, regardless of who stands between prover and device.
@Suite struct RepetitionTests {
  private static let tokenUnknown: [UInt8] = [0x83, 0x03, 0x04, 0xf6]

  private func request(_ number: UInt64?, _ command: BoundedText<32> = "unlock") -> Request {
    var request = Request(command: command)
    request.number = number
    return request
  }

  private func done(_ step: ProverStep) throws -> ProverOutcome {
    guard case .done(let verdict) = step else { throw ProverFault.malformed }
    return verdict
  }

  /// A device, and a token that it remembers.
  private func acquaintedDevice(_ maker: ExampleToken = ExampleToken()) throws -> (
    device: ExampleDevice, token: [UInt8]
  ) {
    let (device, token) = (try ExampleDevice(), try maker.token())
    var prover = try Prover.with(token, request: request(1, "status"))
    #expect(try device.round(&prover).response.status == .accepted)
    (device.lock.performed, device.store.rounds) = ([], [])
    return (device, token)
  }

  /// A man in the middle passes on M2, keeps the answer, and says in its place that the token is not known.
  private func suppressAnswer(_ device: ExampleDevice, to prover: inout Prover) throws {
    #expect(device.respond(try device.answer(from: &prover)).status == .accepted)
    guard case .awaitChallenge = try prover.receive(Self.tokenUnknown.span) else { throw ProverFault.malformed }
  }

  @Test func `a verdict held back and a forged tokenUnknown in its place get a command carried out once`() throws {
    let (device, token) = try acquaintedDevice(ExampleToken { $0.maximumUses = 2 })
    var prover = try Prover.with(token, request: request(101), remembered: true)
    try suppressAnswer(device, to: &prover)
    let (response, step) = try device.round(&prover)
    let verdict = try done(step)
    #expect(device.lock.performed == ["unlock"])
    #expect(verdict.status == .accepted)
    // A repetition keeps no place.
    #expect(response.status == .accepted && response.isPeerAuthenticated && response.credential == nil)
    #expect(verdict.isRepetition)
    #expect(verdict.notice.highestRequestNumber == 101)
    // It cost one use, of which one went to getting acquainted, and nothing was written.
    #expect(device.store.uses.values.first?.count == 2)
    #expect(device.store.rounds.count == 1)
    #expect(device.store.repetitions == [.accepted])
  }

  @Test func `the same with the second answer held back for 29 seconds, while others are served`() throws {
    let (device, token) = try acquaintedDevice()
    let other = try ExampleDevice(connection: 2, store: device.store)
    var prover = try Prover.with(token, request: request(101), remembered: true)
    try suppressAnswer(device, to: &prover)
    let held = try device.answer(from: &prover)
    // First a few, so that the number stays in the window, then enough for it to fall out.
    for count in [10, 70] {
      for number in 0..<UInt64(count) {
        #expect(try other.status(of: ExampleToken(), request: request(200 + UInt64(count) + number)) == .accepted)
      }
      #expect(other.lock.performed.count == (count == 10 ? 10 : 80))
    }
    device.clock.advance(milliseconds: 29_000)
    #expect(device.respond(held, waited: 29_000).status == .internal)
    let verdict = try done(try prover.receive(hex(device.outgoing).span))
    #expect(verdict.isRepetition)
    #expect(verdict.notice.highestRequestNumber == 339)
    #expect(device.lock.performed == ["unlock"])
  }

  @Test func `a request without a number works as ever, and is carried out each time`() throws {
    let (device, token) = try acquaintedDevice()
    var prover = try Prover.with(token, request: request(nil), remembered: true)
    try suppressAnswer(device, to: &prover)
    let verdict = try done(try device.round(&prover).step)
    #expect(verdict.status == .accepted)
    #expect(!verdict.isRepetition)
    #expect(device.lock.performed == ["unlock", "unlock"])
  }

  @Test func `a command that failed stays failed, and is not tried again`() throws {
    let device = try acquaintedDevice().device
    device.lock.fails = true
    #expect(try device.status(of: ExampleToken(), request: request(5)) == .internal)
    device.lock.fails = false
    #expect(try device.status(of: ExampleToken(), request: request(5)) == .internal)
    #expect(device.lock.performed == ["unlock"])
    #expect(device.store.repetitions == [.internal])
  }

  @Test func `an outcome that was never written is not made up`() throws {
    let device = try acquaintedDevice().device
    device.store.losesOutcomes = true
    #expect(try device.status(of: ExampleToken(), request: request(5)) == .accepted)
    #expect(try device.status(of: ExampleToken(), request: request(5)) == .internal)
    #expect(device.lock.performed == ["unlock"])
  }

  @Test func `the number of one command does not answer for another, nor for other parameters`() throws {
    let device = try acquaintedDevice().device
    #expect(try device.status(of: ExampleToken(), request: request(5)) == .accepted)
    #expect(try device.status(of: ExampleToken(), request: request(5, "lock")) == .commandRefused)
    var withParameter = request(5)
    try withParameter.append(parameter: "slowly")
    #expect(try device.status(of: ExampleToken(), request: withParameter) == .commandRefused)
    #expect(try device.status(of: ExampleToken(), request: request(5)) == .accepted)
    #expect(device.lock.performed == ["unlock"])
  }

  @Test func `only the answer to a repetition has a highest number`() throws {
    let device = try acquaintedDevice().device
    var verdicts: [UInt64?] = []
    for number in [7, 6, nil, 7] as [UInt64?] {
      var prover = try Prover.with(try ExampleToken().token(), request: request(number))
      verdicts.append(try done(try device.round(&prover).step).notice.highestRequestNumber)
    }
    #expect(verdicts == [nil, nil, nil, 7])
  }

  @Test func `a prover that tries again without its integrity proof sends the same number, which counts once`() throws {
    let device = try acquaintedDevice().device
    let wrong = [UInt8](repeating: 0xee, count: 32)
    var prover = try Prover.with(try ExampleToken().token(), request: request(9, "status"), integrity: wrong)
    guard case .awaitChallenge = try device.round(&prover).step else { throw ProverFault.malformed }
    let verdict = try done(try device.round(&prover).step)
    #expect(verdict.status == .accepted)
    #expect(!verdict.isRepetition)
    #expect(device.store.requests.values.first?.highest == 9)
  }

  // MARK: Codes

  private func numbered(_ device: CodedDevice, _ code: BoundedText<16>) throws -> Request {
    var request = try device.request(otp: code)
    request.number = 5
    return request
  }

  @Test func `a repetition tests no code and counts no failure`() throws {
    let coded = try CodedDevice([.integrity, .device, .otp], otp: hotpMethod)
    let right = try numbered(coded, try coded.otp(0))
    #expect(try coded.device.status(of: coded.token, request: right.copy()) == .accepted)
    let after = coded.ann
    for code in [try coded.otp(0), try coded.otp(1), "000000"] as [BoundedText<16>] {
      #expect(try coded.device.status(of: coded.token, request: try numbered(coded, code)) == .accepted)
    }
    #expect(coded.ann == after)
    #expect(coded.device.lock.performed == ["unlock"])
  }

  @Test func `two connections with one request and its code get it carried out once`() throws {
    let coded = try CodedDevice([.integrity, .device, .otp], otp: hotpMethod)
    let other = try ExampleDevice(connection: 2, store: coded.device.store)
    other.policy.rules = coded.device.policy.rules
    other.policy.limits = coded.device.policy.limits
    let request = try numbered(coded, try coded.otp(0))
    var statuses: [Status] = []
    coded.device.store.onAttempt = {
      coded.device.store.onAttempt = {}
      statuses.append((try? other.status(of: coded.token, request: request.copy())) ?? .malformed)
    }
    statuses.append(try coded.device.status(of: coded.token, request: request.copy()))
    #expect(statuses == [.accepted, .accepted])
    #expect(coded.device.lock.performed.count + other.lock.performed.count == 1)
    #expect(coded.device.store.repetitions == [.accepted])
    #expect(coded.ann.failureCount == 0)
  }
}
