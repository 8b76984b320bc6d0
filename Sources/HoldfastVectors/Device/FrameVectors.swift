import Glibc
import HoldfastTransport

/// The vectors `Frames`: a stream of bytes that ends, and the messages that a connection receives from it.
///
/// Source: docs/protocol.md, Frames.
struct FrameVectors: ReplayableGroup {
  private let scheme: Scheme

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    scheme = try group.member("isLine").flag() ? .unixStream : .rfcomm
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let stream = try test.bytes("stream")
    var expected: [[UInt8]] = []
    if test.result != .invalid {
      expected = try test.node.member("messages").elements().map { (node) throws(VectorFault) in try node.bytes() }
    }
    var received: [[UInt8]] = []
    do throws(TransportError) {
      let connection = try connection(withInput: stream)
      while true {
        do throws(TransportError) {
          received.append(try connection.receive(by: Deadline(afterMilliseconds: 1000), wholeWithin: 1000).bytes)
        } catch .emptyFrame { received.append([]) }
      }
    } catch {
      guard error == .closed else { return .refused("\(error)") }
      return test.result == .invalid || received == expected ? .accepted : .differs("messages")
    }
  }

  /// Returns a connection on which these bytes arrive, and then its end.
  private func connection(withInput bytes: [UInt8]) throws(TransportError) -> Connection {
    let (near, far) = try OpenFile.socketPair(framing: .stream)
    // A socket has room for every stream of the vectors.
    let count = unsafe bytes.withUnsafeBytes {
      unsafe send(far.descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
    }
    guard count == bytes.count else { throw .truncated }
    return Connection(file: near, scheme: scheme)
  }
}
