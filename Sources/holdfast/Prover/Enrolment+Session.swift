import HoldfastCore
import HoldfastKeys
import HoldfastMeasurement
import HoldfastOpenSSL

extension Enrolment {
  typealias Session = ProverSession<OpenSSLCryptography, SystemRandom>

  /// Measures this process and its host, now, for a session in which every round proves what was measured.
  func session(for request: borrowing Request, isRemembered: Bool) throws(Failure) -> Session {
    let measurements: ProvableMeasurements
    do throws(MeasurementError) {
      var measurer = Measurer()
      measurements = try measurer.provableMeasurements(for: try decodedConfiguration())
    } catch { throw Failure(error) }
    do throws(EncodingFault) {
      return try Session(
        identity: measurements.identity(for: descriptor), request: request.copy(), token: token.span,
        encoding: encoding,
        isRemembered: isRemembered, cryptography: OpenSSLCryptography(), random: SystemRandom())
    } catch { throw Failure(.malformed, "the measurement token is too long", hint: "enrol again") }
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
