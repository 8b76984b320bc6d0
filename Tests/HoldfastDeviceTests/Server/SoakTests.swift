import Foundation
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

/// A long run in little time: 20,000 rounds, or as many as `HOLDFAST_SOAK_ROUNDS` says (`make soak`: a million). Each test
/// has a process of its own, whose memory, threads and descriptors must stay as they are once a tenth of the work is done.
@Suite struct SoakTests {
  @Test func `rounds without number leave memory, threads and descriptors as they were`() async {
    let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      let roundCount = soakRoundCount()
      let soak = try Soak()
      let (claims, token) = try soak.grant()
      try soak.measure("rounds", count: roundCount) { count in
        // Four connections at a time, none for more than a hundred rounds.
        try Soak.inParallel(count) { [served = soak.served] count in
          let prover = TestProver(claims, token: token)
          var peer = try served.connect()
          for number in 0..<count {
            if number % 100 == 0 { peer = try served.connect() }
            let flaws: Flaws = number % 100 == 0 ? [] : .asReference
            try #require(try peer.round(prover, "unlock", flaws: flaws).status == .accepted)
          }
        }
      }
      try soak.end()
    }
    show(result)
  }

  @Test func `peers without number that come and go leave memory, threads and descriptors as they were`() async {
    let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      let soak = try Soak()
      let peerCount = soakRoundCount() / 10
      try soak.measure("peers", count: peerCount) { count in
        try Soak.inParallel(count) { [served = soak.served] count in
          for number in 0..<count {
            let peer = try served.connect()
            if number % 2 == 0 { _ = try? peer.receive() }
          }
        }
      }
      try soak.end()
    }
    show(result)
  }

  @Test func `tokens without number are remembered up to the limit, and memory stays as it was`() async {
    let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      let soak = try Soak(rememberedTokenCount: 100)
      try soak.measure("tokens", count: soakRoundCount() / 20) { count in
        let peer = try soak.served.connect()
        for _ in 0..<count {
          let prover = try soak.device.prover()
          try #require(try peer.round(prover).status == .accepted)
        }
        #expect(soak.served.server.device.memory.count == 100)
      }
      try soak.end()
    }
    show(result)
  }
}

/// The output of a test's process.
private func show(_ result: ExitTest.Result?) {
  print(String(decoding: result?.standardOutputContent ?? [], as: UTF8.self), terminator: "")
}

private func soakRoundCount() -> Int {
  ProcessInfo.processInfo.environment["HOLDFAST_SOAK_ROUNDS"].flatMap(Int.init) ?? 20_000
}

/// A server that is used for long, and how much it uses itself.
private struct Soak {
  private static let threadCount = 4

  let device: TestDevice
  let served: ServedDevice

  init(rememberedTokenCount: Int = 4096) throws {
    // Whether a disk is fast is not the question here.
    if unsafe access("/dev/shm", W_OK) == 0 { unsafe setenv("TMPDIR", "/dev/shm", 1) }
    device = try TestDevice()
    device.clock.run()
    served = try ServedDevice(
      device, rememberedTokenCount: rememberedTokenCount, keepsNotices: false)
  }

  func grant() throws -> (TestClaims, [UInt8]) {
    let prover = try device.prover()
    return (prover.claims, prover.token)
  }

  /// Does `work` in ten parts, and compares what the process uses after the first and after the last.
  func measure(_ name: String, count: Int, _ work: (Int) throws -> Void) throws {
    let clock = SystemClock()
    let start = clock.monotonicMilliseconds()
    try work(count / 10)
    let warm = try ProcessFigures()
    for _ in 0..<9 { try work(count / 10) }
    let milliseconds = max(clock.monotonicMilliseconds() - start, 1)
    #expect(try ProcessFigures.hasReturned(to: warm))
    let end = try ProcessFigures()
    #expect(end.residentByteCount <= warm.residentByteCount + max(warm.residentByteCount / 10, 4 << 20))
    print(
      "soak: \(count) \(name), \(UInt64(count) * 1000 / milliseconds) a second;",
      "resident \(warm.residentByteCount >> 10) KiB after a tenth, \(end.residentByteCount >> 10) KiB at the end;",
      "threads \(warm.threadCount), \(end.threadCount); descriptors \(warm.descriptorCount), \(end.descriptorCount)")
  }

  /// Divides `count` among threads, and returns when all are done.
  static func inParallel(_ count: Int, _ work: @escaping @Sendable (Int) throws -> Void) throws {
    let crowd = try Crowd()
    for _ in 0..<Soak.threadCount { crowd.start { try work(count / Soak.threadCount) } }
    crowd.wait()
  }

  func end() throws {
    try served.stop()
    let audit = try device.ledger.verifyAudit()
    #expect(audit.firstBroken == nil)
    let attributes = try FileManager.default.attributesOfItem(atPath: DeviceFile.ledger.path(in: device.folder.path))
    print("soak: the ledger has \((attributes[.size] as? NSNumber)?.intValue ?? 0) bytes")
  }
}
