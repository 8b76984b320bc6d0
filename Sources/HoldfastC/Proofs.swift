import CHoldfast
import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport
import Synchronization

/// Proves to the device at an endpoint; see the header.
@c @implementation public func hf_prover_prove(
  _ prover: OpaquePointer?, _ endpoint: UnsafePointer<CChar>?, _ request: UnsafePointer<hf_request_t>?,
  _ options: UnsafePointer<hf_proof_options_t>?, _ result: UnsafeMutablePointer<UInt8>?,
  _ length: UnsafeMutablePointer<Int>?, _ outcome: UnsafeMutablePointer<hf_outcome_t>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(prover, CProver.self)
    let text = try unsafe Input.text(endpoint, maximum: Input.maximumPathByteCount)
    let place = try converting({ _ in .argument }) { () throws(EndpointError) in try Endpoint(parsing: text) }
    let answer = try unsafe ProofAnswer(result, length, outcome)
    let request = try unsafe Input.request(request)
    return try answer.write(
      try object.prove(with: try unsafe ProofOptions(options)) { options throws(ProverError) in
        try object.prover.prove(request, at: place, options: options)
      })
  }
}

/// Proves over a transport of the caller's; see the header.
@c @implementation public func hf_prover_prove_over(
  _ prover: OpaquePointer?, _ channel: UnsafePointer<hf_channel_t>?, _ request: UnsafePointer<hf_request_t>?,
  _ options: UnsafePointer<hf_proof_options_t>?, _ result: UnsafeMutablePointer<UInt8>?,
  _ length: UnsafeMutablePointer<Int>?, _ outcome: UnsafeMutablePointer<hf_outcome_t>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(prover, CProver.self)
    let channel = try unsafe CallerChannel(channel)
    let answer = try unsafe ProofAnswer(result, length, outcome)
    let request = try unsafe Input.request(request)
    return try answer.write(
      try object.prove(with: try unsafe ProofOptions(options)) { options throws(ProverError) in
        try object.prover.prove(request, over: channel, options: options)
      })
  }
}

extension CProver {
  /// Makes a proof that ``hf_prover_cancel(_:)`` can end.
  fileprivate func prove(
    with options: ProofOptions, _ body: (ProofOptions) throws(ProverError) -> ProofOutcome
  ) throws(CallFailure) -> ProofOutcome {
    try converting(CallFailure.init) { () throws(ProverError) in
      try cancellable { cancellation throws(ProverError) in
        var options = options
        options.cancellation = cancellation
        return try body(options)
      }
    }
  }
}

/// Ends the proofs that are running; see the header.
@c @implementation public func hf_prover_cancel(_ prover: OpaquePointer?) -> CInt {
  call { () throws(CallFailure) in
    try unsafe Handle.object(prover, CProver.self).cancelAll()
    return 0
  }
}

/// Proves the app and its host for a nonce; see the header.
@c @implementation public func hf_prover_integrity_proof(
  _ prover: OpaquePointer?, _ device_id: UnsafePointer<UInt8>?, _ nonce: UnsafePointer<UInt8>?, _ nonce_length: Int,
  _ proof: UnsafeMutablePointer<UInt8>?, _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  unsafe prove(
    prover, device_id, nonce, nonce_length, proof, length, by: integrityMeasurementProof(nonce:configuration:keys:))
}

/// Proves the host for a nonce; see the header.
@c @implementation public func hf_prover_device_proof(
  _ prover: OpaquePointer?, _ device_id: UnsafePointer<UInt8>?, _ nonce: UnsafePointer<UInt8>?, _ nonce_length: Int,
  _ proof: UnsafeMutablePointer<UInt8>?, _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  unsafe prove(
    prover, device_id, nonce, nonce_length, proof, length, by: deviceMeasurementProof(nonce:configuration:keys:))
}

private func prove(
  _ prover: OpaquePointer?, _ device: UnsafePointer<UInt8>?, _ nonce: UnsafePointer<UInt8>?, _ nonceByteCount: Int,
  _ proof: UnsafeMutablePointer<UInt8>?, _ length: UnsafeMutablePointer<Int>?,
  by makeProof: (_ nonce: [UInt8], _ configuration: [UInt8], ProofKeys) throws(MeasurementError) -> [UInt8]
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(prover, CProver.self)
    let buffer = try unsafe CallerBuffer(proof, length)
    guard let device = unsafe Input.deviceID(device) else { throw .argument }
    let byteCount = Int(HF_NONCE_BYTES)
    let nonce = try unsafe Input.bytes(nonce, nonceByteCount, in: byteCount...byteCount)
    // With the top bit, it could be the nonce of a session.
    guard nonce[0] < 0x80 else { throw .argument }
    try buffer.require(Int(HF_PROOF_BYTES))
    let enrolment = try converting(CallFailure.init) { () throws(StateFolderFault) in
      try object.prover.folder.requiredEntry(of: device).load()
    }
    let bytes = try converting(CallFailure.init) { () throws(MeasurementError) in
      try makeProof(nonce, enrolment.configuration, object.keys)
    }
    try buffer.write(bytes.span)
    return 0
  }
}

extension ProofOptions {
  /// Reads the conditions of a proof; NULL for the usual ones.
  init(_ pointer: UnsafePointer<hf_proof_options_t>?) throws(CallFailure) {
    self.init()
    guard let options = unsafe pointer?.pointee else { return }
    unsafe device = Input.deviceID(options.device_id)
    guard unsafe options.timeout_milliseconds <= 3_600_000 else { throw .argument }
    if unsafe options.timeout_milliseconds > 0 { unsafe timeoutMilliseconds = Int(options.timeout_milliseconds) }
  }
}

/// The caller's memory for the result and the outcome of a proof. Each may be NULL.
@safe private struct ProofAnswer {
  private let buffer: CallerBuffer?
  private let outcome: UnsafeMutablePointer<hf_outcome_t>?

  /// Checks the memory before anything is sent.
  init(
    _ result: UnsafeMutablePointer<UInt8>?, _ length: UnsafeMutablePointer<Int>?,
    _ outcome: UnsafeMutablePointer<hf_outcome_t>?
  ) throws(CallFailure) {
    let isWanted = unsafe result != nil || length != nil
    unsafe buffer = isWanted ? try CallerBuffer(result, length) : nil
    unsafe self.outcome = outcome
    try buffer?.require(Int(HF_RESULT_BYTES))
  }

  /// Writes the outcome, and returns its status.
  func write(_ done: ProofOutcome) throws(CallFailure) -> CInt {
    let (verdict, timing) = (done.verdict, done.timing)
    try buffer?.write(done.result.span)
    if let outcome = unsafe outcome {
      var filled = hf_outcome_t()
      if let id = done.enrolment?.descriptor.deviceID {
        unsafe withUnsafeMutableBytes(of: &filled.device_id) { bytes in
          for index in 0..<16 { unsafe bytes[index] = id[index] }
        }
      }
      filled.is_authenticated = verdict.isAuthenticated ? 1 : 0
      filled.is_repetition = verdict.isRepetition ? 1 : 0
      filled.missing_factors = UInt32(verdict.notice.missingFactors?.rawValue ?? 0)
      filled.retry_after_seconds = UInt32(clamping: verdict.notice.retryAfterSeconds ?? 0)
      (filled.measure_microseconds, filled.connect_microseconds) = (timing.measure / 1000, timing.connect / 1000)
      (filled.round_microseconds, filled.device_microseconds) = (timing.round / 1000, timing.device / 1000)
      unsafe outcome.pointee = filled
    }
    return verdict.status.result
  }
}

/// A transport of the caller's.
@safe final class CallerChannel: MessageChannel, @unchecked Sendable {
  private let functions: hf_channel_t
  private let isEnded = Atomic(false)

  init(_ pointer: UnsafePointer<hf_channel_t>?) throws(CallFailure) {
    guard let functions = unsafe pointer?.pointee, unsafe functions.receive != nil, unsafe functions.send != nil else {
      throw .argument
    }
    unsafe self.functions = functions
  }

  func receive(by deadline: Deadline, wholeWithin wholeMilliseconds: Int) throws(TransportError) -> ReceivedMessage {
    try checkIsOpen()
    var message = [UInt8](repeating: 0, count: Int(HF_MESSAGE_BYTES))
    var byteCount = message.count
    let result = unsafe message.withUnsafeMutableBufferPointer { memory in
      unsafe functions.receive(functions.context, memory.baseAddress, &byteCount, Self.milliseconds(deadline))
    }
    try checkIsOpen()
    try Self.check(result, late: .timedOutWaiting)
    guard byteCount != 0 else { throw .truncated }
    guard (1...message.count).contains(byteCount) else { throw .tooLong }
    return ReceivedMessage(Array(message[..<byteCount]))
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(TransportError) {
    try checkIsOpen()
    let result = unsafe message.withUnsafeBufferPointer { memory in
      unsafe functions.send(functions.context, memory.baseAddress, memory.count, Self.milliseconds(deadline))
    }
    try checkIsOpen()
    try Self.check(result, late: .timedOutSending)
  }

  func shutdown() {
    guard !isEnded.exchange(true, ordering: .sequentiallyConsistent) else { return }
    unsafe functions.end?(functions.context)
  }

  private func checkIsOpen() throws(TransportError) {
    if isEnded.load(ordering: .sequentiallyConsistent) { throw .cancelled }
  }

  private static func milliseconds(_ deadline: Deadline) -> UInt32 { UInt32(clamping: deadline.remainingMilliseconds) }

  private static func check(_ result: CInt, late: TransportError) throws(TransportError) {
    switch result {
    case 0: return
    case HF_ERROR_TIMEOUT.rawValue: throw late
    default: throw .closed
    }
  }
}
