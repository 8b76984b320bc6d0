import HoldfastCore
import HoldfastKeys
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastTransport

/// Where the time of one proof went, in nanoseconds.
struct ProofTiming {
  /// Measuring app and device.
  var measure: UInt64 = 0
  /// Connecting, until the device's challenge was there.
  var connect: UInt64 = 0
  /// The prover's own part of the round.
  var round: UInt64 = 0
  /// Waiting for the device's verdict.
  var device: UInt64 = 0

  var total: UInt64 { measure + connect + round + device }
}

/// What came of one proof.
struct ProofOutcome {
  let verdict: ProverVerdict
  let result: [UInt8]
  let timing: ProofTiming
}

/// One proof by this process, measured anew, over one connection.
struct Proof {
  let enrolment: Enrolment
  let request: Request
  let endpoint: Endpoint
  let timeoutMilliseconds: Int

  /// Measures, connects and runs the session to its verdict.
  func run(isRemembered: Bool) throws(Failure) -> ProofOutcome {
    var timing = ProofTiming()
    var stopwatch = Stopwatch()
    var session = try makeSession(isRemembered: isRemembered)
    timing.measure = stopwatch.lap()
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    let connection = try transporting { () throws(TransportError) in
      try Connection.connect(to: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    }
    var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
    while true {
      let count: Int
      do throws(Failure) {
        count = try receive(from: connection, into: &buffer, by: deadline)
      } catch {
        guard let verdict = session.verdictSoFar else { throw error }
        return ProofOutcome(verdict: verdict, result: [], timing: timing)
      }
      if timing.connect == 0 { timing.connect = stopwatch.lap() } else { timing.device += stopwatch.lap() }
      let step = try take(buffer.span.extracting(0..<count), &session)
      if case .send = step {
        try send(session.outgoing.bytes, over: connection, by: deadline)
      }
      timing.round += stopwatch.lap()
      if case .done(let verdict) = step {
        return ProofOutcome(verdict: verdict, result: Array(session.reply.result.bytes), timing: timing)
      }
    }
  }

  private typealias Session = ProverSession<OpenSSLCryptography, SystemRandom>

  private func makeSession(isRemembered: Bool) throws(Failure) -> Session {
    let measurements: ProvableMeasurements
    do throws(MeasurementError) {
      var measurer = Measurer()
      measurements = try measurer.provableMeasurements(for: try enrolment.decodedConfiguration())
    } catch { throw Failure(error) }
    do throws(EncodingFault) {
      return try Session(
        identity: measurements.identity(for: enrolment.descriptor), request: request, token: enrolment.token.span,
        encoding: enrolment.encoding, isRemembered: isRemembered, cryptography: OpenSSLCryptography(),
        random: SystemRandom())
    } catch { throw Failure(.malformed, "the measurement token is too long", hint: "enrol again") }
  }

  private func take(_ message: Span<UInt8>, _ session: inout Session) throws(Failure) -> ProverStep {
    do throws(ProverFault) { return try session.receive(message) } catch {
      switch error {
      case .malformed:
        throw Failure(
          .malformed, "the other end does not speak this protocol", hint: "is \(endpoint) a Holdfast device?")
      case .impostor:
        throw Failure(
          .impostor, "the other end did not prove that it is the device that was enrolled",
          hint: "check that \(endpoint) is the right device; do not use this one")
      case .random, .cryptography:
        throw Failure(.fault, "the cryptographic library or the random source failed")
      }
    }
  }

  private func receive(
    from connection: Connection, into buffer: inout [UInt8], by deadline: Deadline
  ) throws(Failure) -> Int {
    try transporting { () throws(TransportError) in
      var span = buffer.mutableSpan
      return try connection.receive(
        into: &span, firstByteBy: deadline, wholeWithin: max(deadline.remainingMilliseconds, 1)
      ).byteCount
    }
  }

  private func send(_ message: Span<UInt8>, over connection: Connection, by deadline: Deadline) throws(Failure) {
    do throws(TransportError) { try connection.send(message, by: deadline) } catch {
      throw Failure(error, endpoint: endpoint)
    }
  }

  private func transporting<Result>(_ body: () throws(TransportError) -> Result) throws(Failure) -> Result {
    do throws(TransportError) { return try body() } catch { throw Failure(error, endpoint: endpoint) }
  }
}

extension Enrolment {
  func decodedConfiguration() throws(MeasurementError) -> MeasurementConfiguration {
    do throws(EncodingFault) { return try MeasurementConfiguration(decoding: configuration.span) } catch {
      throw .malformedConfiguration(error)
    }
  }
}

extension ProvableMeasurements {
  consuming func identity(
    for descriptor: DeviceDescriptor
  ) -> ProverSession<OpenSSLCryptography, SystemRandom>.Identity {
    ProverSession<OpenSSLCryptography, SystemRandom>.Identity(
      deviceID: descriptor.deviceID, keyID: descriptor.keyID, proofKey: key.copy(), integrity: integrity.copy(),
      device: device.copy())
  }
}
