import HoldfastTransport
import Testing

@testable import HoldfastDevice

@Suite struct ConnectionTableTests {
  private let table = ConnectionTable(limit: 2, provingMilliseconds: 100)

  private func add(atMilliseconds now: UInt64) throws -> UInt64? {
    table.add(try Connection.pair().0, atMilliseconds: now)
  }

  @Test func `a peer whose answer is judged keeps its place, and the next oldest loses his`() throws {
    #expect(try add(atMilliseconds: 1000) == 1)
    #expect(try add(atMilliseconds: 1001) == 2)
    #expect(table.beginJudging(1))
    #expect(try add(atMilliseconds: 1100) == nil)
    #expect(try add(atMilliseconds: 1101) == 3)
    #expect(!table.beginJudging(2))
    #expect(!table.remove(2))
    #expect(table.remove(3))
  }

  @Test func `an answer that proved nothing leaves the place to the next newcomer`() throws {
    #expect(try add(atMilliseconds: 1000) == 1)
    #expect(try add(atMilliseconds: 1000) == 2)
    #expect(table.beginJudging(1))
    table.endJudging(1, isProved: false)
    #expect(try add(atMilliseconds: 1100) == 3)
    #expect(!table.remove(1))
  }

  @Test func `whoever has lost his place does not get it back by a late proof`() throws {
    #expect(try add(atMilliseconds: 1000) == 1)
    #expect(try add(atMilliseconds: 1000) == 2)
    #expect(try add(atMilliseconds: 1100) == 3)
    table.endJudging(1, isProved: true)
    #expect(!table.remove(1))
    #expect(table.remove(2))
    #expect(try add(atMilliseconds: 1100) == 4)
    #expect(try add(atMilliseconds: 1100) == nil)
  }

  @Test func `when all are ended, nobody gets a place any more`() throws {
    let (near, far) = try Connection.pair()
    #expect(table.add(near, atMilliseconds: 1000) == 1)
    table.endAll()
    #expect(far.isEnded(withinMilliseconds: .max))
    #expect(table.remove(1))
    #expect(try add(atMilliseconds: 1000) == nil)
  }

  @Test func `a machine that has just started has no peer whose time is over, and then has`() throws {
    #expect(try add(atMilliseconds: 0) == 1)
    #expect(try add(atMilliseconds: 99) == 2)
    #expect(try add(atMilliseconds: 99) == nil)
    #expect(try add(atMilliseconds: 100) == 3)
    #expect(!table.remove(1))
  }
}
