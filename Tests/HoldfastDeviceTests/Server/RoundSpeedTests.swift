import Foundation
import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastStorage
import TestSupport
import Testing

/// Durable rounds a second over 1, 8 and 64 connections, compared with the disk and with a ledger that does not wait for it. These tests
/// measure, and run only on request: `HOLDFAST_SPEED=1 swift test --configuration release --filter RoundSpeedTests`.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["HOLDFAST_SPEED"] != nil))
struct RoundSpeedTests {
  @Test func `many connections make twice as many rounds as the disk syncs, or 0.8 of those without it`() throws {
    var ratios: [Double] = []
    for connections in [1, 8, 64] {
      // In turn, so that other work of the machine meets each of them.
      let (durable, careless) = (try Load(connections), try Load(connections, isDurable: false))
      var (rates, others, disks): ([Double], [Double], [Double]) = ([], [], [])
      for _ in 0..<5 {
        rates.append(try durable.roundsPerSecond())
        others.append(try careless.roundsPerSecond())
        disks.append(try synchronisationsPerSecond(in: durable.folder))
      }
      let (rate, other, disk) = (median(rates), median(others), median(disks))
      print(
        "\(connections) connections: \(Int(rate)) rounds a second; without waiting for the disk \(Int(other));",
        "the disk has \(Int(disk)) synchronisations")
      ratios.append(rate / min(2 * disk, 0.8 * other))
      try durable.end()
      try careless.end()
    }
    #expect(ratios[2] >= 1)
  }
}

private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// Returns how often a second the disk makes 4 KiB more of a file durable.
private func synchronisationsPerSecond(in folder: String) throws -> Double {
  let path = folder + "/synchronised"
  let file = unsafe open(path, O_CREAT | O_WRONLY | O_TRUNC, 0o600)
  try #require(file >= 0)
  defer {
    close(file)
    unsafe unlink(path)
  }
  let page = [UInt8](repeating: 7, count: 4096)
  let start = monotonicNanoseconds()
  let count = 400
  for _ in 0..<count {
    try #require(unsafe write(file, page, page.count) == page.count)
    try #require(fdatasync(file) == 0)
  }
  return Double(count) * 1e9 / Double(monotonicNanoseconds() - start)
}

/// Provers that each have a connection and a token of their own to one device.
private final class Load {
  private let device: TestDevice
  private let served: ServedDevice
  private let provers: [(TestClaims, [UInt8])]
  var folder: String { device.place.path }

  init(_ connections: Int, isDurable: Bool = true) throws {
    device = try TestDevice()
    device.clock.run()
    served = try ServedDevice(device, keepsNotices: false)
    provers = try (0..<connections).map { [device] number in
      let prover = try device.prover { $0.tokenID = TokenID(filledWith: UInt8(number)) }
      return (prover.claims, prover.token)
    }
    // The server has started, and nothing else uses the connection that writes.
    _ = try served.connect().receive()
    if !isDurable {
      try served.server.device.ledger.read { (tables) throws(DatabaseError) in
        _ = try tables.database.run("PRAGMA synchronous = OFF")
      }
    }
  }

  /// Returns the rounds that all connections together make in a second, all of them accepted.
  func roundsPerSecond() throws -> Double {
    let crowd = try Crowd()
    let roundCount = max(2000 / provers.count, 20)
    let start = monotonicNanoseconds()
    for (claims, token) in provers {
      crowd.start { [served] in
        let prover = TestProver(claims, token: token)
        let peer = try served.connect()
        for number in 0..<roundCount {
          let status = try peer.round(prover, "status", flaws: number == 0 ? [] : .asReference).status
          try #require(status == .accepted)
        }
      }
    }
    crowd.wait()
    return Double(provers.count * roundCount) * 1e9 / Double(monotonicNanoseconds() - start)
  }

  func end() throws { try served.stop() }
}
