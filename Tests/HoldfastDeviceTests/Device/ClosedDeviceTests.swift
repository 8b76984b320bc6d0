import Dispatch
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

/// Calls in a wrong order, or at once, on a device that is closed, being made or served.
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

  private func endpoint(_ name: String) throws -> Endpoint { try Endpoint(parsing: "unix:\(device.place.file(name))") }

  @Test func `a device has one server, which goes on when a second one is refused`() throws {
    let open = try device.opened()
    let first = try DeviceServer(open, actuator: LockActuator(device.lock), at: [endpoint("first")])
    let thread = try Thread {
      do throws(ServerFault) { try first.run() } catch { Issue.record(error) }
    }
    let peer = TestPeer(try Connection.connect(to: endpoint("first"), timeoutMilliseconds: 0))
    _ = try peer.challenge()
    #expect(throws: ServerFault.alreadyServed) {
      try DeviceServer(open, actuator: LockActuator(device.lock), at: [endpoint("second")])
    }
    #expect(throws: TransportError.notFound) { try Connection.connect(to: endpoint("second"), timeoutMilliseconds: 0) }
    let next = TestPeer(try Connection.connect(to: endpoint("first"), timeoutMilliseconds: 0))
    #expect(try next.round(device.prover(), "unlock").status == .accepted)
    first.stop()
    thread.join()
    #expect(throws: ServerFault.ledger(.failed)) {
      try DeviceServer(open, actuator: LockActuator(device.lock), at: [endpoint("second")])
    }
  }

  @Test func `a server that could not begin, or never ran, leaves the device to the next one`() throws {
    let open = try device.opened()
    let nowhere = try endpoint("none/socket")
    for _ in 0..<2 {
      #expect(throws: ServerFault.endpoint(nowhere, .notFound)) {
        try DeviceServer(open, actuator: LockActuator(device.lock), at: [nowhere])
      }
    }
    for _ in 0..<2 { _ = try DeviceServer(open, actuator: LockActuator(device.lock), at: [endpoint("socket")]) }
    #expect(try device.ledger.summary().bootCount == 1)
  }

  @Test func `of several servers that are made of one device at once, there is one`() throws {
    let open = try device.opened()
    let endpoints = try (0..<8).map { try endpoint("socket\($0)") }
    let lock = device.lock
    let servers = Mutex<[AnyObject]>([])
    let faults = NoticeLog<ServerFault>()
    DispatchQueue.concurrentPerform(iterations: endpoints.count) { number in
      do throws(ServerFault) {
        let server = try DeviceServer(open, actuator: LockActuator(lock), at: [endpoints[number]])
        servers.withLock { $0.append(server) }
      } catch { faults.add(error) }
    }
    #expect(servers.withLock { $0.count } == 1)
    #expect(faults.all == [ServerFault](repeating: .alreadyServed, count: 7))
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
