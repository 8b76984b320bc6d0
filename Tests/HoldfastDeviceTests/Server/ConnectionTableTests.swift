import HoldfastCore
import HoldfastTransport
import Testing

import HoldfastDevice

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
    table.endJudging(1, acceptedBy: nil)
    #expect(try add(atMilliseconds: 1100) == 3)
    #expect(!table.remove(1))
  }

  @Test func `a peer that was accepted keeps its place until something is not`() throws {
    #expect(try add(atMilliseconds: 1000) == 1)
    table.endJudging(1, acceptedBy: .code(1))
    #expect(try add(atMilliseconds: 1000) == 2)
    #expect(try add(atMilliseconds: 1100) == 3)
    #expect(!table.remove(2))
    table.endJudging(1, acceptedBy: nil)
    #expect(try add(atMilliseconds: 1100) == 4)
    #expect(!table.remove(1))
  }

  @Test func `whoever has lost his place does not get it back by a late proof`() throws {
    #expect(try add(atMilliseconds: 1000) == 1)
    #expect(try add(atMilliseconds: 1000) == 2)
    #expect(try add(atMilliseconds: 1100) == 3)
    table.endJudging(1, acceptedBy: .code(1))
    #expect(!table.remove(1))
    #expect(table.remove(2))
    #expect(try add(atMilliseconds: 1100) == 4)
    #expect(try add(atMilliseconds: 1100) == nil)
  }

  @Test func `one token keeps four places, and a fifth is a newcomer's`() throws {
    let table = ConnectionTable(limit: 6, provingMilliseconds: 100)
    func add() throws -> UInt64? { table.add(try Connection.pair().0, atMilliseconds: 1000) }
    let tokens = [UInt8(1), 2].map { number in
      var tokenID = TokenID()
      tokenID[0] = number
      return RoundCredential.token(verifyingKey: nil, tokenID)
    }
    for number: UInt64 in 1...6 {
      #expect(try add() == number)
      #expect(table.beginJudging(number))
      table.endJudging(number, acceptedBy: tokens[number == 6 ? 1 : 0])
    }
    #expect(table.add(try Connection.pair().0, atMilliseconds: 1100) == 7)
    #expect(!table.beginJudging(5))
    // The newcomer's time has only begun, and the others keep theirs.
    #expect(table.add(try Connection.pair().0, atMilliseconds: 1199) == nil)
    // A place that falls free lets the same token keep another one.
    #expect(table.remove(1))
    table.endJudging(7, acceptedBy: tokens[0])
    #expect(table.add(try Connection.pair().0, atMilliseconds: 1200) == 8)
    #expect(table.add(try Connection.pair().0, atMilliseconds: 1299) == nil)
    #expect(table.add(try Connection.pair().0, atMilliseconds: 1300) == 9)
    #expect(!table.remove(8))
  }

  @Test func `a connection counts for the credential with which it was accepted first`() throws {
    let table = ConnectionTable(limit: 5, provingMilliseconds: 100)
    for number: UInt64 in 1...5 {
      #expect(table.add(try Connection.pair().0, atMilliseconds: 1000) == number)
      if number == 1 { table.endJudging(number, acceptedBy: .code(1)) }
      table.endJudging(number, acceptedBy: .code(2))
    }
    // All five are kept: one by the first code, four by the second.
    #expect(table.add(try Connection.pair().0, atMilliseconds: 1100) == nil)
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
