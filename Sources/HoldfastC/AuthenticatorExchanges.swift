import CHoldfast
import HoldfastAuthenticator
import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport
import HoldfastUser

/// Becomes a user of a device; see the header.
@c @implementation public func hf_authenticator_activate(
  _ authenticator: OpaquePointer?, _ connection: UnsafePointer<hf_connection_t>?, _ code: UnsafePointer<CChar>?,
  _ protection: UnsafePointer<hf_protection_t>?, _ flags: UInt32, _ user: UnsafeMutablePointer<CChar>?,
  _ length: UnsafeMutablePointer<Int>?, _ device_id: UnsafeMutablePointer<UInt8>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    let connection = try unsafe CallerConnection(connection)
    let buffer = try unsafe CallerBuffer(user, length)
    let code = try unsafe Input.ownersCode(code)
    let isReplacing = try Input.isReplacing(flags)
    try buffer.require(Int(HF_USER_BYTES))
    let secret = try unsafe ProtectionSecret(protection) { (place) throws(HostSecretFault) in try place.readOrCreate() }
    let person = try object.person()
    let activated: ActivatedUser
    do throws(UserExchangeError) {
      let milliseconds = connection.options.timeoutMilliseconds
      activated =
        switch connection.way {
        case .endpoint(let endpoint):
          try person.activate(
            with: code, at: endpoint, protection: secret, replacing: isReplacing, timeoutMilliseconds: milliseconds)
        case .channel(let channel):
          try person.activate(
            with: code, over: channel, protection: secret, replacing: isReplacing, timeoutMilliseconds: milliseconds)
        }
    } catch { throw CallFailure(error) }
    try buffer.write(text: Array(activated.user.utf8))
    if let memory = unsafe device_id { for index in 0..<16 { unsafe memory[index] = activated.device[index] } }
    return 0
  }
}

/// Ends a lockout at a device; see the header.
@c @implementation public func hf_authenticator_unlock(
  _ connection: UnsafePointer<hf_connection_t>?, _ code: UnsafePointer<CChar>?
) -> CInt {
  call { () throws(CallFailure) in
    let connection = try unsafe CallerConnection(connection)
    let code = try unsafe Input.ownersCode(code)
    do throws(UserExchangeError) {
      let milliseconds = connection.options.timeoutMilliseconds
      switch connection.way {
      case .endpoint(let endpoint):
        try AuthenticatorUser.unlock(with: code, at: endpoint, timeoutMilliseconds: milliseconds)
      case .channel(let channel):
        try AuthenticatorUser.unlock(with: code, over: channel, timeoutMilliseconds: milliseconds)
      }
    } catch { throw CallFailure(error) }
    return 0
  }
}

/// Takes over a device's time and counters; see the header.
@c @implementation public func hf_authenticator_synchronise(
  _ authenticator: OpaquePointer?, _ prover: OpaquePointer?, _ user: UnsafePointer<CChar>?,
  _ connection: UnsafePointer<hf_connection_t>?, _ said: UnsafeMutablePointer<hf_synchronised_t>?
) -> CInt {
  call { () throws(CallFailure) in
    let person = try unsafe Handle.object(authenticator, CAuthenticator.self).person()
    let object = try unsafe Handle.object(prover, CProver.self)
    let connection = try unsafe CallerConnection(connection)
    let user = unsafe user == nil ? nil : try unsafe Input.text(user, maximum: 32)
    let answer = try object.ask(connection) { options throws(UserExchangeError) in
      switch connection.way {
      case .endpoint(let endpoint): try person.synchronise(user, as: object.prover, at: endpoint, options: options)
      case .channel(let channel): try person.synchronise(user, as: object.prover, over: channel, options: options)
      }
    }
    if let said = unsafe said { unsafe said.pointee = hf_synchronised_t(answer) }
    return 0
  }
}

/// Has a device prove itself to a person; see the header.
@c @implementation public func hf_authenticator_check_host(
  _ authenticator: OpaquePointer?, _ prover: OpaquePointer?, _ user: UnsafePointer<CChar>?,
  _ connection: UnsafePointer<hf_connection_t>?, _ challenge: UnsafeMutablePointer<CChar>?,
  _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let own = try unsafe Handle.object(authenticator, CAuthenticator.self)
    let object = try unsafe Handle.object(prover, CProver.self)
    let connection = try unsafe CallerConnection(connection)
    let buffer = unsafe challenge != nil || length != nil ? try unsafe CallerBuffer(challenge, length) : nil
    try buffer?.require(Int(HF_DEVICE_CHALLENGE_BYTES))
    let user = unsafe user == nil ? nil : try unsafe Input.text(user, maximum: 32)
    let record = try own.use { (authenticator) throws(CallFailure) in
      try converting(CallFailure.init) { () throws(AuthenticatorFault) in
        try authenticator.record(user: user, purpose: .host)
      }
    }
    let person = try own.person()
    let answer = try object.ask(connection) { options throws(UserExchangeError) in
      switch connection.way {
      case .endpoint(let endpoint):
        try person.challengeDevice(with: record, as: object.prover, at: endpoint, options: options)
      case .channel(let channel):
        try person.challengeDevice(with: record, as: object.prover, over: channel, options: options)
      }
    }
    guard let answer else { throw CallFailure(HF_ERROR_IMPOSTOR) }
    try buffer?.write(text: Array(answer.digits.utf8))
    return 0
  }
}

extension CProver {
  /// Asks a device something, so that ``hf_prover_cancel(_:)`` can end it.
  fileprivate func ask<Answer>(
    _ connection: CallerConnection, _ question: (ProofOptions) throws(UserExchangeError) -> Answer
  ) throws(CallFailure) -> Answer {
    try converting(CallFailure.init) { () throws(UserExchangeError) in
      try cancellable { cancellation throws(UserExchangeError) in
        var options = connection.options
        options.cancellation = cancellation
        return try question(options)
      }
    }
  }
}

/// The way to a device that the caller gives.
private struct CallerConnection {
  enum Way {
    case endpoint(Endpoint)
    case channel(CallerChannel)
  }

  let way: Way
  let options: ProofOptions

  init(_ pointer: UnsafePointer<hf_connection_t>?) throws(CallFailure) {
    guard let given = unsafe pointer?.pointee, unsafe (given.endpoint == nil) != (given.channel == nil) else {
      throw .argument
    }
    if unsafe given.endpoint != nil {
      let text = try unsafe Input.text(given.endpoint, maximum: Input.maximumPathByteCount)
      way = .endpoint(try converting({ _ in .argument }) { () throws(EndpointError) in try Endpoint(parsing: text) })
    } else {
      way = .channel(try unsafe CallerChannel(given.channel))
    }
    var conditions = unsafe hf_proof_options_t()
    unsafe (conditions.device_id, conditions.timeout_milliseconds) = (given.device_id, given.timeout_milliseconds)
    options = try unsafe ProofOptions(&conditions)
  }
}

extension Input {
  /// Reads a code from a device's owner, of which no copy remains.
  fileprivate static func ownersCode(_ pointer: UnsafePointer<CChar>?) throws(CallFailure) -> OneUseCode {
    var bytes = try unsafe textBytes(pointer, maximum: 128)
    defer {
      var span = bytes.mutableSpan
      wipe(&span)
    }
    guard let code = OneUseCode(bytes.span) else { throw .argument }
    return code
  }
}

extension hf_synchronised_t {
  fileprivate init(_ answer: SynchronisedUser) {
    self.init()
    unsafe withUnsafeMutableBytes(of: &device_id) { bytes in
      for index in 0..<16 { unsafe bytes[index] = answer.device[index] }
    }
    (has_otp, has_seal) = (answer.otpNext == nil ? 0 : 1, answer.sealNext == nil ? 0 : 1)
    (otp_next, seal_next) = (answer.otpNext ?? 0, answer.sealNext ?? 0)
    clock_offset_seconds = answer.clockOffsetSeconds
  }
}
