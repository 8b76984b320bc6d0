import CHoldfast
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport
import Synchronization

/// The object behind `hf_prover_t`: a prover, and the proofs that are running.
final class CProver: Sendable {
  let prover: Prover
  let keys: ProofKeys
  private let running = Mutex<[ObjectIdentifier: Cancellation]>([:])

  init(state path: String, keys: ProofKeys) { (prover, self.keys) = (Prover(state: path, keys: keys), keys) }

  /// Runs a proof that ``cancelAll()`` can end.
  func cancellable<Result, Failure: Error>(
    _ body: (Cancellation) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let cancellation = Cancellation()
    running.withLock { $0[ObjectIdentifier(cancellation)] = cancellation }
    defer { running.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(cancellation)) } }
    return try body(cancellation)
  }

  /// Ends every proof that is running.
  func cancelAll() {
    // A callback may end a proof on this thread, so the lock is not held.
    for cancellation in running.withLock({ Array($0.values) }) { cancellation.cancel() }
  }
}

extension ProofKeys {
  /// Takes the functions of the caller that assemble the keys; NULL for the default key.
  ///
  /// Whether a key is the default key is found out by comparison: what the caller says of it does not count.
  fileprivate init(_ pointer: UnsafePointer<hf_proof_keys_t>?) throws(CallFailure) {
    guard let keys = unsafe pointer?.pointee else {
      self = .default
      return
    }
    guard let proofKey = unsafe keys.measurement_proof_key, let evidenceKey = unsafe keys.evidence_key,
      (1...UInt32(ProofKeys.maximumCount)).contains(keys.count)
    else { throw .argument }
    self.init(
      count: Int(keys.count),
      measurementProofKey: { index, key in
        unsafe key.withUnsafeMutableBufferPointer { unsafe proofKey(UInt32(index), $0.baseAddress) }
      },
      evidenceKey: { index, key in
        unsafe key.withUnsafeMutableBufferPointer { unsafe evidenceKey(UInt32(index), $0.baseAddress) }
      })
  }
}

/// Opens a prover; see the header.
@c @implementation public func hf_prover_open(
  _ state: UnsafePointer<CChar>?, _ keys: UnsafePointer<hf_proof_keys_t>?,
  _ prover: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt {
  call { () throws(CallFailure) in
    guard let prover = unsafe prover else { throw .argument }
    let keys = try unsafe ProofKeys(keys)
    let path = try unsafe Input.text(state, maximum: Input.maximumPathByteCount)
    unsafe Handle.give(CProver(state: path, keys: keys), to: prover)
    return 0
  }
}

/// Closes a prover; see the header.
@c @implementation public func hf_prover_close(_ prover: OpaquePointer?) {
  unsafe Handle.takeBack(prover, CProver.self)
}

/// Measures, and writes the evidence for the attestation service; see the header.
@c @implementation public func hf_prover_begin(
  _ prover: OpaquePointer?, _ device_id: UnsafePointer<UInt8>?, _ subject: UnsafePointer<CChar>?,
  _ version: UnsafePointer<UInt64>?, _ flags: UInt32, _ evidence: UnsafeMutablePointer<UInt8>?,
  _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(prover, CProver.self)
    let buffer = try unsafe CallerBuffer(evidence, length)
    let isReplacing = try Input.isReplacing(flags, others: HF_KNOWN_CODE | HF_TREE_DIGESTS)
    var enrolling = object.prover
    if flags & HF_KNOWN_CODE != 0 { enrolling.measurementPolicy.insert(.knownCode) }
    if flags & HF_TREE_DIGESTS != 0 { enrolling.measurementPolicy.insert(.treeDigests) }
    var app = AppClaims()
    if unsafe subject != nil { app.subject = try unsafe Input.boundedText(subject) }
    if let version = unsafe version {
      app.version = unsafe AppVersion(major: version[0], minor: version[1], patch: version[2])
      guard unsafe max(version[0], version[1], version[2]) <= maximumInteger else { throw .argument }
    }
    try buffer.require(Int(HF_EVIDENCE_BYTES))
    let device = unsafe Input.deviceID(device_id)
    let baseline = try converting(CallFailure.init) { () throws(ProverError) in
      try enrolling.begin(for: device, as: app, replacing: isReplacing)
    }
    try buffer.write(baseline.evidence.span)
    return 0
  }
}

/// Completes an enrolment; see the header.
@c @implementation public func hf_prover_accept(
  _ prover: OpaquePointer?, _ descriptor: UnsafePointer<CChar>?, _ token: UnsafePointer<UInt8>?, _ token_length: Int,
  _ report: UnsafePointer<CChar>?, _ flags: UInt32
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(prover, CProver.self)
    let description = try unsafe Input.textBytes(descriptor, maximum: 8192)
    let device = try converting({ _ in .argument }) { () throws(KeyFault) in try DeviceDescriptor(json: description) }
    let bytes = try unsafe Input.bytes(token, token_length, in: 1...MeasurementToken.maximumAnswerByteCount)
    var accepted = try converting({ _ in .argument }) { () throws(StateFolderFault) in
      try MeasurementToken(answer: bytes)
    }
    if unsafe report != nil {
      guard accepted.report == nil else { throw .argument }
      accepted = MeasurementToken(accepted.bytes, report: try unsafe issuanceReport(report), terms: accepted.terms)
    }
    guard accepted.bytes.count <= Limit.token.everywhere else { throw .argument }
    let isReplacing = try Input.isReplacing(flags)
    let whole = accepted
    try converting(CallFailure.init) { () throws(ProverError) in
      try object.prover.accept(whole, for: device, replacing: isReplacing)
    }
    return 0
  }
}

private func issuanceReport(_ text: UnsafePointer<CChar>?) throws(CallFailure) -> IssuanceReport {
  let bytes = try unsafe Input.textBytes(text, maximum: 16_384)
  let value = try converting({ _ in .argument }) { () throws(JSONFault) in
    try JSONValue(parsing: bytes, byteLimit: bytes.count)
  }
  guard let report = IssuanceReport(value) else { throw .argument }
  return report
}

/// Compares the app and its host with the baselines; see the header.
@c @implementation public func hf_prover_explain(
  _ prover: OpaquePointer?, _ device_id: UnsafePointer<UInt8>?, _ json: UnsafeMutablePointer<CChar>?,
  _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(prover, CProver.self)
    let buffer = try unsafe CallerBuffer(json, length)
    let device = unsafe Input.deviceID(device_id)
    let all = try converting(CallFailure.init) { () throws(ProverError) in try object.prover.explain(device: device) }
    try buffer.write(
      devices: all.map { device, changes in
        let members = changes.json { CallFailure($0).text }.members ?? []
        return .object([("device_id", .string(hexadecimal(device)))] + members)
      })
    return 0
  }
}

/// Writes the state of each enrolment; see the header.
@c @implementation public func hf_prover_status(
  _ prover: OpaquePointer?, _ device_id: UnsafePointer<UInt8>?, _ json: UnsafeMutablePointer<CChar>?,
  _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(prover, CProver.self)
    let buffer = try unsafe CallerBuffer(json, length)
    let device = unsafe Input.deviceID(device_id)
    let states = try converting(CallFailure.init) { () throws(ProverError) in try object.prover.status(device: device) }
    try buffer.write(devices: states.map { $0.json { CallFailure($0).text } })
    return 0
  }
}

extension CallerBuffer {
  /// Writes `{"devices": […]}` as text.
  fileprivate func write(devices: [JSONValue]) throws(CallFailure) {
    try write(text: JSONValue.object([("devices", .array(devices))]).compact())
  }
}
