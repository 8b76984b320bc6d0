import CHoldfast
import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastUser
import Synchronization

/// The object behind `hf_authenticator_t`. It serves one thread at a time.
final class CAuthenticator: @unchecked Sendable {
  private let authenticator: Authenticator
  private let turn = Mutex(())
  /// The path of the folder, or the caller's store.
  private let place: Place

  enum Place {
    case folder(String)
    case store(any AuthenticatorStore)
  }

  init(_ authenticator: Authenticator, in place: Place) { (self.authenticator, self.place) = (authenticator, place) }

  /// Returns the same authenticator for an exchange with a device, which opens it anew: it may last long. What this one has seen
  /// of a store, that one knows.
  func person() throws(CallFailure) -> AuthenticatorUser {
    switch place {
    case .folder(let path): return AuthenticatorUser(authenticator: path)
    case .store(let store):
      let stamp = try use { (authenticator) throws(CallFailure) in
        try converting(CallFailure.init) { () throws(AuthenticatorFault) in try authenticator.stamp() }
      }
      return AuthenticatorUser(store: store, notBefore: stamp)
    }
  }

  /// Runs `body` when no other thread uses the authenticator.
  func use<Result>(_ body: (Authenticator) throws(CallFailure) -> Result) throws(CallFailure) -> Result {
    try turn.withLock { _ throws(CallFailure) in try body(authenticator) }
  }
}

/// Opens an authenticator; see the header.
@c @implementation public func hf_authenticator_open(
  _ folder: UnsafePointer<CChar>?, _ authenticator: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt {
  unsafe open(folder, authenticator) { path throws(AuthenticatorFault) in try AuthenticatorFolder.open(at: path) }
}

/// Opens an authenticator, and creates it if necessary; see the header.
@c @implementation public func hf_authenticator_create(
  _ folder: UnsafePointer<CChar>?, _ authenticator: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt {
  unsafe open(folder, authenticator) { path throws(AuthenticatorFault) in try AuthenticatorFolder.create(at: path) }
}

private func open(
  _ folder: UnsafePointer<CChar>?, _ handle: UnsafeMutablePointer<OpaquePointer?>?,
  by body: (String) throws(AuthenticatorFault) -> Authenticator
) -> CInt {
  call { () throws(CallFailure) in
    guard let handle = unsafe handle else { throw .argument }
    let path = try unsafe Input.text(folder, maximum: Input.maximumPathByteCount)
    let opened = try converting(CallFailure.init) { () throws(AuthenticatorFault) in try body(path) }
    unsafe Handle.give(CAuthenticator(opened, in: .folder(path)), to: handle)
    return 0
  }
}

/// Closes an authenticator; see the header.
@c @implementation public func hf_authenticator_close(_ authenticator: OpaquePointer?) {
  unsafe Handle.takeBack(authenticator, CAuthenticator.self)
}

/// Makes the next one-time password; see the header.
@c @implementation public func hf_authenticator_password(
  _ authenticator: OpaquePointer?, _ record: UnsafePointer<hf_record_t>?, _ question: UnsafePointer<CChar>?,
  _ code: UnsafeMutablePointer<CChar>?, _ length: UnsafeMutablePointer<Int>?, _ seconds: UnsafeMutablePointer<UInt32>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    let memory = try unsafe CodeMemory(code, length, seconds)
    let question = unsafe question == nil ? nil : try unsafe Input.text(question, maximum: 128)
    let choice = try unsafe RecordChoice(record)
    return try object.use { (authenticator) throws(CallFailure) in
      let record = try choice.record(.otp, in: authenticator)
      let secret = try choice.secret(for: record)
      return try memory.write(
        try converting(CallFailure.init) { () throws(AuthenticatorFault) in
          try authenticator.code(for: record, with: secret, challenge: question, clock: SystemClock())
        })
    }
  }
}

/// Makes a seal; see the header.
@c @implementation public func hf_authenticator_seal(
  _ authenticator: OpaquePointer?, _ record: UnsafePointer<hf_record_t>?, _ request: UnsafePointer<hf_request_t>?,
  _ device_challenge: UnsafePointer<CChar>?, _ code: UnsafeMutablePointer<CChar>?,
  _ length: UnsafeMutablePointer<Int>?, _ seconds: UnsafeMutablePointer<UInt32>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    let memory = try unsafe CodeMemory(code, length, seconds)
    guard let request = unsafe request?.pointee else { throw .argument }
    guard unsafe request.user == nil, unsafe request.otp == nil, unsafe request.seal == nil else { throw .argument }
    let command = try unsafe Input.text(request.command, maximum: 32)
    let parameters = try unsafe Input.parameters(request)
    var challenge: DeviceChallenge?
    if unsafe device_challenge != nil {
      challenge = DeviceChallenge(try unsafe Input.text(device_challenge, maximum: 16))
      guard challenge != nil else { throw .argument }
    }
    let choice = try unsafe RecordChoice(record)
    return try object.use { (authenticator) throws(CallFailure) in
      let record = try choice.record(.seal, in: authenticator)
      let request = try converting({ _ in .argument }) { () throws(SealFault) in
        try SealRequest(command: command, parameters: parameters, fieldByteLimit: record.sealFieldByteLimit)
      }
      let secret = try choice.secret(for: record)
      return try memory.write(
        try converting(CallFailure.init) { () throws(AuthenticatorFault) in
          try authenticator.seal(request, for: record, challenge: challenge, with: secret, clock: SystemClock())
        })
    }
  }
}

/// The caller's memory for a code and its remaining validity.
@safe private struct CodeMemory {
  private let buffer: CallerBuffer
  private let seconds: UnsafeMutablePointer<UInt32>?

  /// Checks the memory before a code is used up.
  init(
    _ code: UnsafeMutablePointer<CChar>?, _ length: UnsafeMutablePointer<Int>?, _ seconds: UnsafeMutablePointer<UInt32>?
  ) throws(CallFailure) {
    unsafe buffer = try CallerBuffer(code, length)
    unsafe self.seconds = seconds
    try buffer.require(Int(HF_CODE_BYTES))
  }

  func write(_ code: Code) throws(CallFailure) -> CInt {
    try buffer.write(text: Array(code.text.utf8))
    unsafe seconds?.pointee = UInt32(clamping: code.secondsRemaining ?? 0)
    return 0
  }
}

/// The record that the caller chose, and what unlocks it.
@safe struct RecordChoice {
  private let user: String?
  private let index: Int?
  /// Whether there is a PIN or a key.
  var hasSecret: Bool { unsafe secret != nil }
  private let secret: UnsafeRawBufferPointer?

  /// Reads the choice; NULL for the only record.
  init(_ pointer: UnsafePointer<hf_record_t>?) throws(CallFailure) {
    guard let record = unsafe pointer?.pointee else {
      unsafe (user, index, secret) = (nil, nil, nil)
      return
    }
    unsafe user = record.user == nil ? nil : try Input.text(record.user, maximum: 32)
    guard unsafe record.index <= 8, unsafe (record.secret != nil) == (record.secret_length != 0),
      unsafe (0...ExternalKey.byteCounts.upperBound).contains(record.secret_length)
    else { throw .argument }
    unsafe index = record.index == 0 ? nil : Int(record.index)
    unsafe secret = record.secret.map { unsafe UnsafeRawBufferPointer(start: $0, count: record.secret_length) }
  }

  func record(_ purpose: RecordPurpose, in authenticator: Authenticator) throws(CallFailure) -> Record {
    try converting(CallFailure.init) { () throws(AuthenticatorFault) in
      try authenticator.record(user: user, index: index, purpose: purpose)
    }
  }

  /// Reads the PIN or key, of which no copy remains.
  func secret(for record: Record) throws(CallFailure) -> ProtectionSecret {
    let host =
      record.protection.contains(.host)
      ? try ExternalKey(ofThisHost: { (place) throws(HostSecretFault) in try place.read() }) : nil
    guard let secret = unsafe secret else {
      guard record.protection.isSubset(of: .host) else { throw CallFailure(HF_ERROR_CODE) }
      return ProtectionSecret(host: host)
    }
    let bytes = unsafe Span<UInt8>(_unsafeBytes: secret)
    switch record.protection.subtracting(.host) {
    case .key:
      guard let key = ExternalKey(bytes) else { throw .argument }
      return ProtectionSecret(key: key, host: host)
    case .pin:
      let pin = try converting({ _ in .argument }) { () throws(PINFault) in try PIN(bytes) }
      return ProtectionSecret(pin: pin, host: host)
    default: throw CallFailure(HF_ERROR_CODE)
    }
  }
}

extension ExternalKey {
  /// Takes the secret of this host, as `body` reads or creates it.
  init(ofThisHost body: (HostSecret) throws(HostSecretFault) -> Secret<32>) throws(CallFailure) {
    let secret: Secret<32>
    do throws(HostSecretFault) { secret = try body(HostSecret(HostFiles())) } catch { throw CallFailure(HF_ERROR_CODE) }
    let key = secret.withBytes { ExternalKey($0) }
    guard let key else { throw CallFailure(HF_ERROR_CODE) }
    self = key
  }
}
