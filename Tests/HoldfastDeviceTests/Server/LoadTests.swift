import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

/// Many peers at once. Each test has a process of its own, whose threads and descriptors it can count.
@Suite struct LoadTests {
  @Test(arguments: ["unix", "unix-stream"])
  func `64 provers are served at once among peers of every bad kind, and nothing is left behind`(scheme: String) async {
    await #expect(processExitsWith: .success) { [scheme] in
      try MixedCrowd(scheme: scheme).run()
    }
  }
}

/// Far more than it takes, also on a machine that has more to do.
private let longestMilliseconds: UInt64 = 300_000

/// 64 provers, of which four each share a token with exactly as many uses as they need, and twelve hostile peers.
private struct MixedCrowd {
  private static let proverCount = 64
  /// As many places as one token keeps.
  private static let sharingCount = 4
  private static let roundCount = 8

  let device: TestDevice
  let served: ServedDevice
  let tokens: [(claims: TestClaims, token: [UInt8])]
  let before: ProcessFigures

  init(scheme: String) throws {
    device = try TestDevice()
    device.clock.run()
    var tokens: [(claims: TestClaims, token: [UInt8])] = []
    for number in 0..<MixedCrowd.proverCount / MixedCrowd.sharingCount {
      let prover = try device.prover {
        $0.tokenID = TokenID(filledWith: UInt8(100 + number))
        $0.maximumUses = UInt64(MixedCrowd.sharingCount * MixedCrowd.roundCount)
      }
      tokens.append((prover.claims, prover.token))
    }
    self.tokens = tokens
    // Whoever is in first answers its second challenge only when everybody is in.
    let timing = ServerTiming(
      answerMilliseconds: 2 * Int(longestMilliseconds), messageMilliseconds: 400, sendMilliseconds: 400,
      provingMilliseconds: 400)
    served = try ServedDevice(device, scheme: scheme, options: ServerOptions(timing: timing))
    _ = try served.connect().round(try device.prover(), "status")
    before = try ProcessFigures()
  }

  func run() throws {
    try useUpTheToken()
    try checkWhatIsLeft()
  }

  private func useUpTheToken() throws {
    let isOver = try WakeUp()
    let hostile = try Crowd()
    for _ in 0..<2 {
      for peer in HostilePeer.allCases {
        hostile.start { [endpoint = served.endpoint] in try peer.run(against: endpoint, until: isOver) }
      }
    }
    let clock = SystemClock()
    let start = clock.monotonicMilliseconds()
    let tally = Tally(proverCount: MixedCrowd.proverCount)
    let provers = try Crowd()
    for number in 0..<MixedCrowd.proverCount {
      provers.start { [served, tokens] in
        let shared = tokens[number / MixedCrowd.sharingCount]
        let prover = TestProver(shared.claims, token: shared.token)
        let peer = try MixedCrowd.firstRound(
          of: prover, at: served, latest: start + longestMilliseconds, tally)
        tally.everybodyIsIn()
        // From here on it must never be sent away.
        for _ in 1..<MixedCrowd.roundCount { tally.add(try peer.round(prover, flaws: .asReference).status) }
      }
    }
    provers.wait()
    #expect(clock.monotonicMilliseconds() - start < longestMilliseconds)
    isOver.raise()
    hostile.wait()
    #expect(tally.statuses == [.accepted: MixedCrowd.proverCount * MixedCrowd.roundCount])
  }

  /// Tries again while there is no room; any other refusal counts.
  private static func firstRound(
    of prover: TestProver, at served: ServedDevice, latest: UInt64, _ tally: Tally
  ) throws -> TestPeer {
    while SystemClock().monotonicMilliseconds() < latest {
      let peer = try served.connect()
      do {
        let answer = try prover.answer(try peer.challenge(), command: "unlock")
        try peer.send(answer.message)
        tally.add(try prover.open(try peer.receive(), after: answer).status)
        return peer
      } catch is EncodingFault {
        // `busy` instead of a challenge.
      } catch is TransportError {
        // Its place was given to another: this prover was too slow.
      }
      tally.pause()
    }
    throw StillNoRoom()
  }

  private func checkWhatIsLeft() throws {
    #expect(try ProcessFigures.hasReturned(to: before))
    for shared in tokens {
      #expect(try served.connect().round(TestProver(shared.claims, token: shared.token)).status == .usesExhausted)
    }
    try served.stop()
    let audit = try device.ledger.verifyAudit()
    #expect(audit.firstBroken == nil)
  }
}

private struct StillNoRoom: Error {}

/// The answers to the provers, and whether all of them have begun.
private final class Tally: Sendable {
  private let state: Mutex<(statuses: [Status: Int], missingCount: Int)>
  private let isFull: WakeUp

  init(proverCount: Int) {
    state = Mutex(([:], proverCount))
    guard let isFull = try? WakeUp() else { fatalError("no descriptors") }
    self.isFull = isFull
  }

  var statuses: [Status: Int] { state.withLock { $0.statuses } }

  func add(_ status: Status) {
    state.withLock { $0.statuses[status, default: 0] += 1 }
  }

  /// Returns once every prover has said so: all of them are connected then.
  func everybodyIsIn() {
    let missingCount = state.withLock { state in
      state.missingCount -= 1
      return state.missingCount
    }
    if missingCount == 0 { isFull.raise() }
    isFull.wait(milliseconds: longestMilliseconds)
  }

  /// A prover that was sent away waits a little before it comes again, as a person would.
  func pause() {
    isFull.wait(milliseconds: 5)
  }
}
