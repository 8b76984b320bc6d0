import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastProver

/// A device of the core in memory, with the backend that issues tokens for it.
final class TestLock {
  let descriptor: DeviceDescriptor
  private let scalar: Secret<32>
  private let issuer: TestIssuer

  init(id byte: UInt8 = 7) throws {
    issuer = try TestIssuer()
    scalar = secret([UInt8](repeating: byte, count: 32))
    descriptor = try DeviceDescriptor(
      deviceID: DeviceID(filledWith: byte), publicPoint: P256PrivateKey(scalar: scalar).publicPoint)
  }

  /// Exchanges evidence for a token, as a service and a backend would.
  func token(for evidence: [UInt8]) throws -> MeasurementToken {
    var cryptography = OpenSSLCryptography()
    let authentic = try AuthenticEvidence(opening: evidence.span, using: &cryptography) { _ in
      ProofKeys.default.evidenceKey()
    }
    let (configuration, app, device) = (
      authentic.evidence.configuration, authentic.evidence.app, authentic.evidence.device
    )
    let integrity = try configuration.integrityMeasurement(app: app, device: device, using: &cryptography)
    let host = try configuration.deviceMeasurement(device: device, using: &cryptography)
    var claims = TestClaims(for: descriptor.deviceID)
    claims.integrity = integrity.withBytes { Array($0) }
    claims.device = host.withBytes { Array($0) }
    claims.proofKey = ProofKeys.default.measurementProofKey().withBytes { Array($0) }
    return MeasurementToken(try issuer.token(claims, to: descriptor.publicKey.point), report: nil)
  }

  /// Serves each of the connections until its peer ends it, one after the other, on a thread of its own.
  func serve(_ connections: [Connection]) throws -> Thread {
    let key = scalar.copy()
    let issuer = issuer.point
    let descriptor = descriptor
    return try Thread {
      do {
        let store = try MemoryStore(trusting: issuer)
        store.floor = testTime
        for (number, connection) in connections.enumerated() {
          try Self.serve(connection, number: number, store, key, descriptor)
        }
      } catch { Issue.record(error) }
    }
  }

  private static func serve(
    _ connection: Connection, number: Int, _ store: MemoryStore, _ scalar: borrowing Secret<32>,
    _ descriptor: DeviceDescriptor
  ) throws {
    var cryptography = OpenSSLCryptography()
    let seed = try ChallengeSource.seed(from: scalar, using: &cryptography)
    var session = DeviceSession<Environment>(
      deviceID: descriptor.deviceID, keyID: descriptor.keyID, cryptography: OpenSSLCryptography(),
      key: try P256PrivateKey(scalar: scalar), store: store, policy: TestPolicy(), random: SystemRandom(),
      clock: TestClock(), challenges: ChallengeSource(seed: seed, bootCount: 1, connection: UInt64(number)))
    var lock = AnsweringLock()
    do throws(TransportError) {
      while true {
        do throws(DeviceFault) { try session.makeChallenge() } catch {
          Issue.record(error)
          return
        }
        try connection.send(session.challenge.bytes, by: patience)
        let message = try connection.receive(by: patience, wholeWithin: 60_000).bytes
        _ = session.respond(to: message.span, waitedMilliseconds: 0, actuator: &lock)
        try connection.send(session.outgoing.bytes, by: patience)
      }
    } catch { #expect(error == .closed) }
  }

  private static var patience: Deadline { Deadline(afterMilliseconds: 60_000) }

  private enum Environment: DeviceEnvironment {
    typealias Crypto = OpenSSLCryptography
    typealias Key = P256PrivateKey
    typealias Store = MemoryStore
    typealias Rules = TestPolicy
    typealias Random = SystemRandom
    typealias Time = TestClock
  }
}

/// An actuator that answers with the command.
private struct AnsweringLock: Actuator {
  mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(request.command.bytes) } catch { throw ActuatorFailure() }
  }
}

/// A channel of another type than the library's own.
final class TestChannel: MessageChannel {
  private let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  func receive(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> ReceivedMessage {
    try connection.receive(by: deadline, wholeWithin: wholeMilliseconds)
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    try connection.send(message, by: deadline)
  }

  func shutdown() { connection.shutdown() }
}
