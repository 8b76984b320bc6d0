import TestSupport
import Testing

import HoldfastStorage

@Suite struct LockWaitTests {
  @Test func `a lock is looked for after each millisecond, until the time is up`() {
    let wait = LockWait(milliseconds: 3)
    #expect((0..<5).map(wait.pause(after:)) == [true, true, true, false, false])
    #expect(!LockWait(milliseconds: 0).pause(after: 0))
    #expect(!LockWait(milliseconds: -1).pause(after: 0))
  }

  @Test func `a connection waits in this way and not in SQLite's`() throws {
    let database = try openTestDatabase(in: try TemporaryFolder(), busyTimeoutMilliseconds: 5000)
    #expect(database.busyTimeoutMilliseconds == 5000)
    #expect(try database.oneUnsigned("PRAGMA busy_timeout") == 0)
  }
}
