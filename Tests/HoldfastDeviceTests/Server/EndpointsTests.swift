import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import Testing

import HoldfastDevice

struct EndpointsTests {
  @Test func `one token is used at two endpoints of a device, and its uses are counted together`() throws {
    let device = try TestDevice()
    let stream = try Endpoint(parsing: "unix-stream:\(device.place.path)/stream")
    let served = try ServedDevice(device, others: [stream])
    let prover = try device.prover { $0.maximumUses = 3 }
    let peers = [try served.connect(), try served.connect(to: stream)]
    #expect(try peers[0].round(prover, "unlock").status == .accepted)
    #expect(try peers[1].round(prover, "unlock").status == .accepted)
    #expect(try peers[0].round(prover, "unlock").status == .accepted)
    #expect(try peers[1].round(prover, "unlock").status == .usesExhausted)
    try served.stop()
  }

  @Test func `an endpoint that is gone ends the others with it, and is named`() throws {
    let device = try TestDevice()
    var line: SerialLine? = try SerialLine()
    let terminal = try Endpoint(parsing: "tty:\(try #require(line).path)")
    let served = try ServedDevice(device, others: [terminal])
    let peer = try served.connect()
    _ = try peer.challenge()
    line = nil
    #expect(throws: ServerFault.endpoint(terminal, .closed)) { try served.waitForEnd() }
    peer.expectEnd()
  }

  @Test func `none is listened at where one of them is taken`() throws {
    let device = try TestDevice()
    let other = try TestDevice(seed: 2)
    let served = try ServedDevice(device)
    let free = try Endpoint(parsing: "unix:\(other.place.path)/free")
    #expect(throws: ServerFault.endpoint(served.endpoint, .addressInUse)) {
      _ = try DeviceServer(try other.opened(), actuator: LockActuator(other.lock), at: [free, served.endpoint])
    }
    #expect(throws: TransportError.notFound) { try Connection.connect(to: free, timeoutMilliseconds: 0) }
    try served.stop()
  }
}
