import Glibc
import HoldfastLinux
import Testing

import HoldfastDevice

@Suite struct WorkerGateTests {
  @Test func `as many are let in as there are places, and nobody once it is closed`() throws {
    let gate = try #require(WorkerGate(limit: 2))
    #expect([gate.enter(), gate.enter(), gate.enter()] == [true, true, false])
    gate.leave()
    #expect([gate.enter(), gate.enter()] == [true, false])
    gate.leave()
    gate.leave()
    gate.closeAndWait()
    #expect(!gate.enter())
  }

  @Test func `whoever closes it waits for all that are inside, also if it was empty before`() throws {
    let gate = try #require(WorkerGate(limit: 2))
    let ended = try WakeUp()
    for _ in 0..<2 { #expect(gate.enter()) }
    for _ in 0..<2 { gate.leave() }
    for _ in 0..<2 { #expect(gate.enter()) }
    let isStarted = Thread.detach {
      gate.closeAndWait()
      ended.raise()
    }
    #expect(isStarted && !ended.wait(milliseconds: 50))
    gate.leave()
    #expect(!ended.wait(milliseconds: 50))
    gate.leave()
    #expect(ended.wait(milliseconds: UInt64(TestPeer.patienceMilliseconds)))
  }

  @Test func `a flag is raised any number of times and never waits, and no other program gets it`() throws {
    let flag = try WakeUp()
    #expect(!flag.isRaised)
    #expect(fcntl(flag.descriptor, F_GETFD) & FD_CLOEXEC != 0)
    // More than a pipe holds.
    for _ in 0..<70_000 { flag.raise() }
    #expect(flag.wait(milliseconds: nil))
  }
}
