import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport
import TestSupport

import HoldfastDevice

/// A peer without keys that keeps the server busy until it is told to stop.
enum HostilePeer: CaseIterable {
  /// Connects again and again and says nothing.
  case silent
  /// Sends a byte now and then.
  case slow
  /// Sends answers without ever reading.
  case flooding
  /// Sends what is no message.
  case garbage
  /// Ends its own direction at once and waits.
  case halfOpen
  /// Is gone before it was served.
  case fleeting

  /// How long a peer of this kind waits before its next step, so that others get a turn of the processor.
  private static let pauseMilliseconds: UInt64 = 4
  /// How many connections one peer holds at a time.
  private static let heldCount = 40

  func run(against endpoint: Endpoint, until isOver: WakeUp) throws {
    var held: [RawSocket] = []
    while !isOver.wait(milliseconds: HostilePeer.pauseMilliseconds) {
      let peer = try RawSocket(endpoint)
      switch self {
      case .silent:
        held.append(peer)
      case .slow:
        // The length of 4096 bytes, then zeros without end.
        var byte: UInt8 = 0x10
        while peer.writeIfTaken([byte]), !isOver.wait(milliseconds: HostilePeer.pauseMilliseconds) { byte = 0 }
      case .flooding:
        let unknown = try unknownReference(framing: endpoint)
        while peer.writeIfTaken(unknown), !isOver.isRaised {}
        held.append(peer)
      case .garbage:
        _ = peer.writeIfTaken(try randomBytes(64))
        held.append(peer)
      case .halfOpen:
        peer.endWriting()
        held.append(peer)
      case .fleeting:
        break
      }
      if held.count > HostilePeer.heldCount { held.removeFirst() }
    }
  }

  /// An answer that is well-formed and refers to no token: the device does not end the connection because of it.
  private func unknownReference(framing endpoint: Endpoint) throws -> [UInt8] {
    let (random, reference, sealed) = (try randomBytes(16), try randomBytes(16), try randomBytes(40))
    var head: [UInt8] = []
    ProofMessageHead.encode(random: fixed(random), encoding: .reference, token: reference.span, into: &head)
    var message: [UInt8] = []
    message.appendCBOR(array: 5)
    message.appendCBOR(unsigned: 2)
    message.appendCBOR(bytes: head.span)
    message.appendCBORNull()
    message.appendCBORNull()
    message.appendCBOR(bytes: sealed.span)
    guard endpoint.scheme.framing == .stream else { return message }
    return [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
  }
}
