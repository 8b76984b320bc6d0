import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import TestSupport
import Testing

import HoldfastDevice

/// Options that are out of every range.
@Suite struct NumbersTests {
  private let device: TestDevice

  init() throws { device = try TestDevice() }

  @Test(arguments: [Int.max, .max / 4, 1 << 40])
  func `more connections than the system has descriptors for are refused`(connectionCount: Int) throws {
    #expect(throws: ServerFault.noDescriptors) {
      _ = try ServedDevice(device, options: ServerOptions(connectionCount: connectionCount))
    }
    #expect(try device.ledger.summary().bootCount == 0)
  }

  @Test(arguments: [0, -1, -100, Int.min])
  func `with no places every peer is told to come again`(connectionCount: Int) throws {
    let served = try ServedDevice(device, options: ServerOptions(connectionCount: connectionCount))
    let peer = try served.connect()
    #expect(try peer.unsealedStatus() == .busy)
    peer.expectEnd()
    try served.stop()
  }

  @Test(arguments: [0, -1, Int.min, .max]) func `any queue is the system's at most`(waitingCount: Int) throws {
    var options = ServerOptions()
    options.waitingCount = waitingCount
    let served = try ServedDevice(device, options: options)
    #expect(try served.connect().round(try device.prover(), "status").status == .accepted)
    try served.stop()
  }

  @Test(arguments: [0, -1, Int.min])
  func `a peer that gets no time is let go after two challenges`(milliseconds: Int) throws {
    let timing = ServerTiming(answerMilliseconds: milliseconds, messageMilliseconds: milliseconds)
    let served = try ServedDevice(device, options: ServerOptions(timing: timing))
    let peer = try served.connect()
    for _ in 0..<2 {
      _ = try peer.challenge()
      #expect(try peer.unsealedStatus() == .challengeExpired)
    }
    peer.expectEnd()
    try served.stop()
  }

  @Test func `a server without an endpoint ends the process`() async {
    await #expect(processExitsWith: .failure) {
      let device = try TestDevice()
      _ = try DeviceServer(try device.opened(), actuator: LockActuator(device.lock), at: [])
    }
  }

  @Test(arguments: [[], [0], [0x01, 0x00, 0x85]] as [[UInt8]])
  func `one connection whose peer ends in the middle is served to its end`(part: [UInt8]) throws {
    let (ours, theirs) = try Connection.pair(framing: .stream)
    #expect(unsafe Glibc.send(theirs.file.descriptor, part, part.count, CInt(MSG_NOSIGNAL)) == part.count)
    #expect(Glibc.shutdown(theirs.file.descriptor, CInt(SHUT_WR)) == 0)
    let open = try device.opened()
    try open.serve(ours, actuator: LockActuator(device.lock))
    let peer = TestPeer(theirs)
    _ = try peer.challenge()
    if !part.isEmpty { #expect(try peer.unsealedStatus() == .malformed) }
    peer.expectEnd()
    #expect(device.lock.current == .locked)
    open.close()
  }
}
