import HoldfastCore
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastTransport

/// Somebody who speaks the protocol himself, with the genuine app's measurements at hand: the strongest position short of
/// the device's key.
struct Attacker {
  let enrolment: Enrolment
  let endpoint: Endpoint

  typealias Session = ProverSession<OpenSSLCryptography, SystemRandom>

  /// One connection to the device.
  final class Line {
    private let connection: Connection
    private let endpoint: Endpoint

    init(_ endpoint: Endpoint) throws(Failure) {
      self.endpoint = endpoint
      do throws(TransportError) {
        connection = try Connection.connect(to: endpoint, timeoutMilliseconds: 5000)
      } catch { throw Failure(error, endpoint: endpoint) }
    }

    func receive() throws(Failure) -> [UInt8] {
      var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
      do throws(TransportError) {
        var span = buffer.mutableSpan
        let count = try connection.receive(into: &span, firstByteWithin: 5000, wholeWithin: 5000)
        return Array(buffer[..<count])
      } catch { throw Failure(error, endpoint: endpoint) }
    }

    func send(_ message: [UInt8]) throws(Failure) {
      do throws(TransportError) { try connection.send(message.span, timeoutMilliseconds: 5000) } catch {
        throw Failure(error, endpoint: endpoint)
      }
    }

    /// Sends an answer and gives the status that comes back.
    func exchange(_ message: [UInt8]) throws(Failure) -> Status {
      try send(message)
      let reply = try receive()
      do throws(EncodingFault) { return try VerdictMessage(reply.span).status } catch {
        throw Failure(.malformed, "the device answered with something else than a verdict")
      }
    }
  }

  /// A genuine answer to `challenge`.
  func answer(to challenge: [UInt8], token: [UInt8]? = nil) throws(Failure) -> [UInt8] {
    var session = try session(token: token ?? enrolment.token)
    do throws(ProverFault) { _ = try session.receive(challenge.span) } catch {
      throw Failure(.malformed, "the challenge is not the device's")
    }
    return Array(session.outgoing.bytes)
  }

  /// The status that a token gets, with right proofs.
  func status(ofToken token: [UInt8]) throws(Failure) -> Status {
    let line = try Line(endpoint)
    return try line.exchange(try answer(to: try line.receive(), token: token))
  }

  /// A token with this app's own measurements, made without the issuer.
  func forgeToken(
    format: MeasurementTokenFormat, issuer: inout P256PrivateKey, issuedAt: UInt64, expires: UInt64
  ) throws(Failure) -> [UInt8] {
    let measurements = try measure()
    var random = SystemRandom()
    var cryptography = OpenSSLCryptography()
    let tokenID: TokenID
    do throws(RandomFailure) { tokenID = try random.fixedBytes() } catch { throw Failure(.fault, "no randomness") }
    let claims = MeasurementClaims(
      issuer: BoundedText("mallory.example"), subject: BoundedText("holdfast"),
      audience: enrolment.descriptor.deviceID, expires: expires, issuedAt: issuedAt, tokenID: tokenID,
      integrity: measurements.integrity.copy(), device: measurements.device.copy(), proofKey: measurements.key.copy(),
      generation: 1, maximumUses: nil, commands: nil, version: .zero, user: nil)
    do throws(TokenWritingFault) {
      return try MeasurementTokenWriter(format: format).write(
        claims, to: enrolment.descriptor.publicKey.point, issuer: &issuer, random: &random, using: &cryptography)
    } catch { throw Failure(.fault, "the token could not be written") }
  }

  private func session(token: [UInt8]) throws(Failure) -> Session {
    let measurements = try measure()
    do throws(EncodingFault) {
      return try Session(
        identity: measurements.identity(for: enrolment.descriptor),
        request: Request(command: BoundedText("unlock" as StaticString)), token: token.span,
        encoding: enrolment.encoding, isRemembered: false, cryptography: OpenSSLCryptography(), random: SystemRandom())
    } catch { throw Failure(.malformed, "the token is too long") }
  }

  private func measure() throws(Failure) -> ProvableMeasurements {
    do throws(MeasurementError) {
      var measurer = Measurer()
      return try measurer.provableMeasurements(for: try enrolment.decodedConfiguration())
    } catch { throw Failure(error) }
  }
}
