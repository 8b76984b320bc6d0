import HoldfastCore
import HoldfastDevice
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import TestSupport
import Testing

/// Bulletins on the connections of a server.
@Suite struct MailTests {
  private func message(_ bulletin: [UInt8]? = nil) -> [UInt8] {
    var message: [UInt8] = []
    let bytes = bulletin ?? []
    MailMessage.encode(bulletin == nil ? .list : .bulletin, bytes.span, into: &message)
    return message
  }

  private func answer(_ peer: TestPeer, to message: [UInt8]) throws -> BulletinAnswer {
    try peer.send(message)
    let answer = try peer.receive()
    return try BulletinAnswer(answer.span)
  }

  @Test(arguments: [(UInt64(9_000), Status.accepted), (11_000, .challengeExpired)])
  func `mail does not prolong the time of a challenge`(milliseconds: UInt64, status: Status) throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let (peer, prover) = (try served.connect(), try device.prover())
    #expect(try peer.round(prover).status == .accepted)
    let answer = try prover.answer(try peer.challenge(), command: "unlock")
    // Once this is answered, the device has begun to count.
    #expect(try self.answer(peer, to: message()).list != nil)
    device.clock.advance(milliseconds: 20_000)
    #expect(try self.answer(peer, to: message()).list != nil)
    device.clock.advance(milliseconds: milliseconds)
    try peer.send(answer.message)
    #expect(try prover.open(try peer.receive(), after: answer).status == status)
    try served.stop()
  }

  @Test func `a bulletin that was taken is told to the server's log once, and others see what it says`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let (peer, prover) = (try served.connect(), try device.prover())
    let bystander = try served.connect()
    #expect(try bystander.round(prover).status == .accepted)
    #expect(try peer.round(prover).status == .accepted)
    _ = try peer.challenge()
    var bulletin = TestBulletin(for: device.folder.descriptor.deviceID)
    bulletin.revoked = [(prover.claims.tokenID, until: prover.claims.expires)]
    let delivery = message(try device.issuer.bulletin(bulletin))
    #expect(try answer(peer, to: delivery).result == .taken)
    #expect(try answer(peer, to: delivery).result == .known)
    #expect(try bystander.round(prover, flaws: .asReference).status == .tokenRevoked)
    try served.stop()
    let told = served.notices.all.compactMap { notice -> UInt64? in
      if case .bulletin(_, _, _, let number) = notice { number } else { nil }
    }
    #expect(told == [bulletin.number])
  }

  @Test func `whoever comes to a line with an empty frame has no permission of the peer before`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device, scheme: "unix-stream")
    let (peer, prover) = (try served.connect(), try device.prover())
    #expect(try peer.round(prover).status == .accepted)
    _ = try peer.challenge()
    #expect(try answer(peer, to: message()).list != nil)
    try peer.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: TestPeer.patienceMilliseconds))
    #expect(throws: TransportError.emptyFrame) { try peer.receive() }
    _ = try peer.challenge()
    try peer.send(message())
    #expect(try peer.unsealedStatus() == .malformed)
    try served.stop()
  }

  @Test func `the ninth message since the last accepted round ends the connection`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    let (peer, prover) = (try served.connect(), try device.prover())
    for _ in 0..<2 {
      #expect(try peer.round(prover).status == .accepted)
      let challenge = try peer.challenge()
      for _ in 0..<8 { #expect(try answer(peer, to: message()).result == .taken) }
      // The challenge is still open.
      let second = try prover.answer(challenge, command: "status")
      try peer.send(second.message)
      #expect(try prover.open(try peer.receive(), after: second).status == .accepted)
    }
    _ = try peer.challenge()
    for _ in 0..<8 { #expect(try answer(peer, to: message()).result == .taken) }
    try peer.send(message())
    #expect(try peer.unsealedStatus() == .malformed)
    peer.expectEnd()
    try served.stop()
  }
}
