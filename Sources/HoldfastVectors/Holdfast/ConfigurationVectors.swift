import HoldfastCore

/// `MeasurementConfiguration`: bytes that a strict reader takes or refuses.
///
/// Source: docs/protocol.md, Measurement.
struct ConfigurationVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bytes = try test.bytes("configuration")
    do throws(EncodingFault) {
      let configuration = try MeasurementConfiguration(decoding: bytes.span)
      return configuration.encoded() == bytes ? .accepted : .differs("configuration, written again,")
    } catch { return .refused("\(error)") }
  }
}
