import Dispatch
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import TestSupport
import Testing

import HoldfastDevice

/// Calls in a wrong order, or at once, on a device that is closed or being made.
@Suite struct ClosedDeviceTests {
  private let device: TestDevice

  init() throws { device = try TestDevice() }

  @Test func `a session that outlives its device makes no challenge, and accepts nothing`() throws {
    let open = try device.opened()
    var session = try open.session(actuator: LockActuator(device.lock))
    let answer = try device.prover().answer(try session.challenge(), command: "unlock")
    open.close()
    let next = try device.opened()
    let reply = session.respond(to: answer.message.span, waitedMilliseconds: 0)
    #expect(reply.outcome.status == .challengeExpired)
    #expect(try VerdictMessage(reply.message.span).status == .challengeExpired)
    #expect(device.lock.current == .locked)
    #expect(throws: DeviceFault.store) { _ = try session.challenge() }
    next.close()
  }

  @Test func `no server is made of a closed device, and its start does not count`() throws {
    let open = try device.opened()
    open.close()
    let endpoint = try Endpoint(parsing: "unix:\(device.place.path)/socket")
    #expect(throws: ServerFault.ledger(.failed)) {
      _ = try DeviceServer(open, actuator: LockActuator(device.lock), at: [endpoint])
    }
    #expect(try device.ledger.summary().bootCount == 0)
    #expect(throws: TransportError.notFound) { _ = try Connection.connect(to: endpoint, timeoutMilliseconds: 0) }
  }

  @Test func `a device that is closed by several threads at once ends once`() throws {
    let open = try device.opened()
    _ = try open.session(actuator: LockActuator(device.lock))
    DispatchQueue.concurrentPerform(iterations: 8) { _ in open.close() }
    #expect(try device.ledger.auditEntries(limit: 100).count { $0.event == .stopped } == 1)
    try device.opened().close()
  }

  @Test func `a server runs once`() throws {
    let served = try ServedDevice(device)
    try served.stop()
    try served.server.run()
    #expect(throws: TransportError.notFound) { try served.connect() }
  }

  @Test func `of several calls at once that make one folder, one succeeds`() throws {
    let path = device.place.file("new")
    let faults = NoticeLog<DeviceFolderFault>()
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      do throws(DeviceFolderFault) { _ = try DeviceFolder.create(at: path, policy: .forSimulatedLock) } catch {
        faults.add(error)
      }
    }
    let refusals: [DeviceFolderFault] = [.alreadyMade, .folder(FileError(.locked, at: path))]
    #expect(faults.all.count == 7 && faults.all.allSatisfy(refusals.contains), "\(faults.all)")
    _ = try OpenDevice(at: path)
  }
}
