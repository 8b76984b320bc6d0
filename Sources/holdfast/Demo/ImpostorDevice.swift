import Glibc
import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastTransport

/// A device that says it is another: it has that one's id and public key, and not its private key.
struct ImpostorDevice: Sendable {
  let descriptor: DeviceDescriptor
  /// What it answers, whatever it is sent.
  let verdict: [UInt8]

  /// M3 with a status that it cannot seal.
  static func verdict(_ status: Status) -> [UInt8] {
    var verdict: [UInt8] = []
    VerdictMessage.encode(unsealed: status, into: &verdict)
    return verdict
  }

  /// Answers one prover, on a thread of its own.
  func answerOnce(at endpoint: Endpoint) throws(Failure) {
    let listener: Listener
    do throws(TransportError) { listener = try Listener(endpoint) } catch { throw Failure(error, endpoint: endpoint) }
    let challenge = try challenge()
    BackgroundThread.start { [verdict] in
      defer { listener.close() }
      guard let connection = try? listener.accept() else { return }
      var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
      var span = buffer.mutableSpan
      try? connection.send(challenge.span, timeoutMilliseconds: 5000)
      _ = try? connection.receive(into: &span, firstByteWithin: 5000, wholeWithin: 5000)
      try? connection.send(verdict.span, timeoutMilliseconds: 5000)
    }
  }

  private func challenge() throws(Failure) -> [UInt8] {
    var random = SystemRandom()
    let nonce: FixedBytes<16>
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw Failure(.fault, "no randomness") }
    var challenge: [UInt8] = []
    Challenge(
      deviceID: descriptor.deviceID, nonce: nonce, keyID: descriptor.keyID, required: .device,
      clock: SystemClock().unixSeconds()
    ).encode(into: &challenge)
    return challenge
  }
}
