import Glibc
import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastTransport

/// A device that says it is another: it has that one's id and public key, and not its private key.
struct ImpostorDevice: Sendable {
  let descriptor: DeviceDescriptor

  /// Answers one prover, on a thread of its own, with a challenge and an acceptance that it cannot seal.
  func answerOnce(at endpoint: Endpoint) throws(Failure) {
    let listener: Listener
    do throws(TransportError) { listener = try Listener(endpoint) } catch { throw Failure(error, endpoint: endpoint) }
    let messages = try self.messages()
    BackgroundThread.start {
      guard let connection = try? listener.accept() else { return }
      var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
      var span = buffer.mutableSpan
      try? connection.send(messages.challenge.span, timeoutMilliseconds: 5000)
      _ = try? connection.receive(into: &span, firstByteWithin: 5000, wholeWithin: 5000)
      try? connection.send(messages.verdict.span, timeoutMilliseconds: 5000)
      listener.close()
    }
  }

  private func messages() throws(Failure) -> (challenge: [UInt8], verdict: [UInt8]) {
    var random = SystemRandom()
    let nonce: FixedBytes<16>
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw Failure(.fault, "no randomness") }
    var challenge: [UInt8] = []
    Challenge(
      deviceID: descriptor.deviceID, nonce: nonce, keyID: descriptor.keyID, required: .device,
      clock: SystemClock().unixSeconds()
    ).encode(into: &challenge)
    var verdict: [UInt8] = []
    VerdictMessage.encode(unsealed: .accepted, into: &verdict)
    return (challenge, verdict)
  }
}
