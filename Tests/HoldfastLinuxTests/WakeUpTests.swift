import HoldfastLinux
import Testing

@Suite struct WakeUpTests {
  @Test func `a count of zero wakes no thread, and a wait for it ends at its deadline`() throws {
    let wakeUp = try WakeUp()
    #expect(!wakeUp.isRaised)
    #expect(!wakeUp.wait(milliseconds: 0))
    #expect(!wakeUp.wait(until: Deadline(afterMilliseconds: 1)))
    #expect(!wakeUp.lower())
  }

  @Test func `each raise is lowered once, and waiting takes nothing`() throws {
    let wakeUp = try WakeUp()
    for _ in 0..<3 { wakeUp.raise() }
    #expect(wakeUp.wait(milliseconds: nil))
    #expect(wakeUp.isRaised)
    #expect((0..<4).map { _ in wakeUp.lower() } == [true, true, true, false])
    #expect(!wakeUp.isRaised)
  }

  @Test func `more raises than the kernel keeps neither block nor fail`() throws {
    let wakeUp = try WakeUp()
    for _ in 0..<200_000 { wakeUp.raise() }
    #expect(wakeUp.isRaised)
  }

  @Test func `a raise on another thread ends a wait without a deadline`() throws {
    let wakeUp = try WakeUp()
    let thread = try Thread { wakeUp.raise() }
    #expect(wakeUp.wait(until: .never))
    thread.join()
  }
}
