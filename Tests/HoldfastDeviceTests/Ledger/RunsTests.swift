import HoldfastCore
import HoldfastFormats
import TestSupport
import Testing

import HoldfastDevice

/// How the ledger knows whether the server's last run ended in order.
@Suite struct RunsTests {
  private let device: TestDevice

  init() throws { device = try TestDevice() }

  private func lastEvents(_ count: Int) throws -> [String] {
    try device.ledger.auditEntries(limit: 1000).suffix(count).map { entry in
      entry.event.name + entry.event.details.map { " \($0.1.line)" }.joined()
    }
  }

  @Test func `an end in order leaves nothing behind`() throws {
    for start in 1...3 {
      #expect(try device.ledger.start(realClock: testTime, host: "a") == UInt64(start))
      #expect(try device.ledger.summary().hasUnfinishedRun)
      try device.ledger.finish(realClock: testTime)
      #expect(try !device.ledger.summary().hasUnfinishedRun)
    }
    #expect(try device.ledger.summary().disorderlyEnds == 0)
    #expect(try lastEvents(4) == ["started 2", "stopped", "started 3", "stopped"])
  }

  @Test(
    arguments: [
      ("a", "a", "the process was killed or crashed"), ("a", "b", "the host went down"),
      ("", "b", "the process or its host went down"), ("a", "", "the process or its host went down"),
    ])
  func `the next start records a run that was cut off, and what the host says about it`(
    host: String, next: String, text: String
  ) throws {
    _ = try device.ledger.start(realClock: testTime, host: host)
    try device.reopenLedger()
    _ = try device.ledger.start(realClock: testTime, host: next)
    #expect(try lastEvents(3) == ["started 1", "run-cut-off \(NamedValue.text(text).line)", "started 2"])
    #expect(try device.ledger.summary().disorderlyEnds == 1)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `a device that is closed has ended in order, and one that was only opened has not begun`() throws {
    let open = try device.opened()
    open.close()
    #expect(try device.ledger.summary().bootCount == 0)
    let second = try device.opened()
    _ = try second.session(actuator: LockActuator(device.lock))
    #expect(try device.ledger.summary().hasUnfinishedRun)
    second.close()
    #expect(try !device.ledger.summary().hasUnfinishedRun)
    #expect(try device.ledger.summary().disorderlyEnds == 0)
  }

  @Test func `each event has a level, and what was denied or failed has a high one`() throws {
    let failure = AuditEvent.failed(AuditedFailure(round: 7, ActuatorFailure()))
    let levels: [(AuditEvent, AuditLevel)] = [
      (.started(bootCount: 1), .information), (.stopped, .information), (.reset(DeviceID()), .notice),
      (.policySeen(Digest()), .notice), (.policySeen(nil), .error), (failure, .error),
      (.clockFloorMoved(from: 1, to: 2), .warning), (.unproved(UnauthenticatedTotals()), .warning),
    ]
    for (event, level) in levels { #expect(event.level == level, "\(event.name)") }
    #expect(AuditLevel.allCases.map(\.name) == ["information", "notice", "warning", "error"])
  }
}
