import HoldfastLinux
import Testing

import HoldfastCore
import HoldfastDevice

/// The places of an external actuator, without one: the test takes the commands itself.
@Suite struct CommandQueueTests {
  private let wakeUp: WakeUp

  init() throws { wakeUp = try WakeUp() }

  private func queue(
    placeCount: Int = 2, turnMilliseconds: Int = 60_000, answerMilliseconds: Int = 60_000
  ) throws -> CommandQueue {
    let queue = try CommandQueue(
      placeCount: placeCount, turnMilliseconds: turnMilliseconds, answerMilliseconds: answerMilliseconds,
      wakeUp: wakeUp)
    queue.open()
    return queue
  }

  private func command(_ sequence: UInt64) -> ActuatorCommand {
    ActuatorCommand(Request(command: "unlock"), of: AcceptedRound(sequence: sequence))
  }

  private func failure(_ outcome: CommandQueue.Outcome) -> ActuatorFailure.Reason? {
    guard case .failure(let failure) = outcome else { return nil }
    return failure.reason
  }

  @Test func `there are as many places as were asked for, and none while it is closed`() throws {
    let queue = try queue()
    let (first, second) = (try #require(queue.reserve()), try #require(queue.reserve()))
    #expect(first != second && queue.reserve() == nil)
    queue.release(first)
    #expect(queue.reserve() == first)
    queue.close()
    queue.release(second)
    #expect(queue.reserve() == nil)
    queue.open()
    #expect(queue.reserve() == second)
  }

  @Test func `commands are taken in the order in which they came, and each gets its outcome`() throws {
    let queue = try queue()
    let places = [try #require(queue.reserve()), try #require(queue.reserve())]
    for (index, place) in places.enumerated() { queue.submit(command(UInt64(index)), at: place) }
    #expect(wakeUp.isRaised)
    for index in 0..<2 {
      let (place, command) = try #require(queue.next())
      #expect(place == places[index] && command.sequence == UInt64(index))
      queue.finish(place, .success([UInt8(index)]))
    }
    #expect(queue.next() == nil && queue.reserve() == nil)
    for index in 0..<2 { #expect(try queue.wait(at: places[index]).get() == [UInt8(index)]) }
    #expect(queue.reserve() != nil && queue.reserve() != nil && queue.reserve() == nil)
  }

  @Test func `an event is given with its outcome, once, and that of an abandoned command never`() throws {
    let queue = try queue(answerMilliseconds: 0)
    var events: [String] = []
    for event in ["first", "second"] {
      let place = try #require(queue.reserve())
      queue.submit(command(1), at: place)
      _ = try #require(queue.next())
      queue.finish(place, .failure(ActuatorFailure(.badAnswer)), event: BoundedText(event))
      #expect(failure(queue.wait(at: place) { events.append($0.description) }) == .badAnswer)
    }
    #expect(events == ["first", "second"])
  }

  @Test func `an outcome is given once, and the place waits again for the next command`() throws {
    let queue = try queue(placeCount: 1)
    for number in 0..<3 as Range<UInt8> {
      let place = try #require(queue.reserve())
      queue.submit(command(UInt64(number)), at: place)
      queue.finish(try #require(queue.next()).place, .success([number]))
      #expect(try queue.wait(at: place).get() == [number])
    }
  }

  @Test func `a command whose turn does not come is not handed over, then or later`() throws {
    let queue = try queue(placeCount: 1, turnMilliseconds: 0)
    let place = try #require(queue.reserve())
    queue.submit(command(1), at: place)
    #expect(failure(queue.wait(at: place)) == .notHandedOver)
    #expect(queue.next() == nil)
    #expect(queue.reserve() == place)
  }

  @Test func `if the thread that carries out commands hangs, the round ends, and its place is not given away`() throws {
    let queue = try queue(placeCount: 1, turnMilliseconds: 0, answerMilliseconds: 0)
    let place = try #require(queue.reserve())
    queue.submit(command(1), at: place)
    let taken = try #require(queue.next())
    let text: BoundedText<64> = "the actuator did not answer in time"
    #expect(throws: ActuatorFailure(.timedOut, text: text)) { try queue.wait(at: place).get() }
    #expect(queue.reserve() == nil)
    queue.finish(taken.place, .success([]))
    #expect(queue.reserve() == place)
    // The late outcome is not that of the next command.
    queue.submit(command(2), at: place)
    #expect(failure(queue.wait(at: place)) == .notHandedOver)
  }

  @Test func `if the actuator is lost, the commands that wait fail, and one that is under way gets its own failure`()
    throws
  {
    let queue = try queue()
    let places = [try #require(queue.reserve()), try #require(queue.reserve())]
    for place in places { queue.submit(command(1), at: place) }
    let taken = try #require(queue.next())
    queue.close()
    queue.finish(taken.place, .failure(ActuatorFailure(.ended)))
    #expect(failure(queue.wait(at: places[0])) == .ended && failure(queue.wait(at: places[1])) == .unavailable)
  }

  @Test func `a command that comes after the actuator was lost fails at once`() throws {
    let queue = try queue()
    let place = try #require(queue.reserve())
    queue.close()
    queue.submit(command(1), at: place)
    #expect(failure(queue.wait(at: place)) == .unavailable)
    queue.open()
    #expect(queue.reserve() == place && queue.next() == nil)
  }

  @Test func `the pause before a start doubles from 100 ms to 10 s, and is short again after 10 s of work`() {
    var delay = RestartDelay()
    #expect((0..<9).map { _ in delay.next() } == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    delay.ended(afterMilliseconds: 9999)
    #expect(delay.next() == 10_000)
    delay.ended(afterMilliseconds: 10_000)
    #expect(delay.next() == 100)
  }
}
