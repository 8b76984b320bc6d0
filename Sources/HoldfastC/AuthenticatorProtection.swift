import CHoldfast
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastUser

/// Writes the records without their secrets; see the header.
@c @implementation public func hf_authenticator_records(
  _ authenticator: OpaquePointer?, _ user: UnsafePointer<CChar>?, _ json: UnsafeMutablePointer<CChar>?,
  _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    let buffer = try unsafe CallerBuffer(json, length)
    let user = unsafe user == nil ? nil : try unsafe Input.text(user, maximum: 32)
    let records = try object.use { (authenticator) throws(CallFailure) in
      try converting(CallFailure.init) { () throws(AuthenticatorFault) in try authenticator.records(user: user) }
    }
    try buffer.write(text: JSONValue.object([("records", .array(records.map(\.json)))]).compact())
    return 0
  }
}

/// Changes what protects a record; see the header.
@c @implementation public func hf_authenticator_change(
  _ authenticator: OpaquePointer?, _ record: UnsafePointer<hf_record_t>?, _ old: UnsafePointer<hf_protection_t>?,
  _ protection: UnsafePointer<hf_protection_t>?,
  _ show: (@convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> CInt)?,
  _ context: UnsafeMutableRawPointer?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    guard let show = unsafe show else { throw .argument }
    let choice = try unsafe RecordChoice(record)
    guard !choice.hasSecret else { throw .argument }
    let before = try unsafe ProtectionSecret(old) { (place) throws(HostSecretFault) in try place.read() }
    let after = try unsafe ProtectionSecret(protection) { (place) throws(HostSecretFault) in try place.readOrCreate() }
    let record = try object.use { (authenticator) throws(CallFailure) in
      do throws(CallFailure) { return try choice.record(.otp, in: authenticator) } catch {
        return try choice.record(.seal, in: authenticator)
      }
    }
    let person = try object.person()
    let isChanged = try converting(CallFailure.init) { () throws(UserExchangeError) in
      try person.changeProtection(of: record, from: before, to: after) { code in
        var text = SecretBytes(zeros: code.count + 1)
        var bytes = text.mutableBytes
        for index in code.indices { bytes[index] = code[index] }
        return text.withBytes { text in
          unsafe text.withUnsafeBytes { memory in
            unsafe show(context, memory.baseAddress?.assumingMemoryBound(to: CChar.self)) == 0
          }
        }
      }
    }
    guard isChanged else { throw CallFailure(HF_ERROR_CANCELLED) }
    return 0
  }
}

/// Restores the secrets from before a change; see the header.
@c @implementation public func hf_authenticator_undo(
  _ authenticator: OpaquePointer?, _ user: UnsafePointer<CChar>?, _ undo_code: UnsafePointer<CChar>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    let user = try unsafe Input.text(user, maximum: 32)
    var code = try unsafe Input.textBytes(undo_code, maximum: 128)
    defer {
      var span = code.mutableSpan
      wipe(&span)
    }
    let person = try object.person()
    do throws(UserExchangeError) { try person.undoChange(of: user, under: code.span) } catch {
      throw CallFailure(error)
    }
    return 0
  }
}

/// Confirms a change; see the header.
@c @implementation public func hf_authenticator_confirm(
  _ authenticator: OpaquePointer?, _ user: UnsafePointer<CChar>?, _ index: UInt32
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    let user = try unsafe Input.text(user, maximum: 32)
    guard index <= 8 else { throw .argument }
    let person = try object.person()
    let isConfirmed = try converting(CallFailure.init) { () throws(UserExchangeError) in
      try person.confirmChange(of: user, index: index == 0 ? nil : Int(index))
    }
    guard isConfirmed else { throw CallFailure(HF_ERROR_CHANGE) }
    return 0
  }
}

extension ProtectionSecret {
  /// Reads what the caller gives, of which no copy remains; NULL for nothing. `host` reads or creates this host's secret.
  init(
    _ pointer: UnsafePointer<hf_protection_t>?, host body: (HostSecret) throws(HostSecretFault) -> Secret<32>
  ) throws(CallFailure) {
    guard let given = unsafe pointer?.pointee else {
      self.init()
      return
    }
    guard unsafe (given.pin != nil) == (given.pin_length != 0), unsafe (given.key != nil) == (given.key_length != 0),
      unsafe given.binds_host <= 1, unsafe (0...6).contains(given.pin_length),
      unsafe (0...ExternalKey.byteCounts.upperBound).contains(given.key_length)
    else { throw .argument }
    var pin: PIN?
    var key: ExternalKey?
    var host: ExternalKey?
    if let bytes = unsafe given.pin {
      let span = unsafe Span<UInt8>(_unsafeStart: bytes, count: given.pin_length)
      pin = try converting({ _ in .argument }) { () throws(PINFault) in try PIN(span) }
    }
    if let bytes = unsafe given.key {
      key = unsafe ExternalKey(Span<UInt8>(_unsafeStart: bytes, count: given.key_length))
      guard key != nil else { throw .argument }
    }
    if unsafe given.binds_host == 1 { host = try ExternalKey(ofThisHost: body) }
    self.init(pin: pin, key: key, host: host)
  }
}
