import CHoldfast
import HoldfastAuthenticator

/// Opens an authenticator in a store of the caller's; see the header.
@c @implementation public func hf_authenticator_open_store(
  _ store: UnsafePointer<hf_store_t>?, _ state_id: UnsafePointer<UInt8>?, _ change_count: UInt64,
  _ authenticator: UnsafeMutablePointer<OpaquePointer?>?
) -> CInt {
  call { () throws(CallFailure) in
    guard let handle = unsafe authenticator else { throw .argument }
    let store = try unsafe CallerStore(store)
    let stamp = try unsafe AuthenticatorStamp(state_id, change_count)
    let opened = try converting(CallFailure.init) { () throws(AuthenticatorFault) in
      try Authenticator(store: store, notBefore: stamp)
    }
    unsafe Handle.give(CAuthenticator(opened, in: .store(store)), to: handle)
    return 0
  }
}

/// Writes the stamp of the state in the caller's store; see the header.
@c @implementation public func hf_authenticator_stamp(
  _ authenticator: OpaquePointer?, _ state_id: UnsafeMutablePointer<UInt8>?,
  _ change_count: UnsafeMutablePointer<UInt64>?
) -> CInt {
  call { () throws(CallFailure) in
    let object = try unsafe Handle.object(authenticator, CAuthenticator.self)
    guard let id = unsafe state_id, let count = unsafe change_count else { throw .argument }
    let stamp = try object.use { (authenticator) throws(CallFailure) in
      try converting(CallFailure.init) { () throws(AuthenticatorFault) in try authenticator.stamp() }
    }
    for index in 0..<Int(HF_STATE_ID_BYTES) { unsafe id[index] = stamp?.id[index] ?? 0 }
    unsafe count.pointee = stamp?.changeCount ?? 0
    return 0
  }
}

extension AuthenticatorStamp {
  /// Reads a stamp that the caller kept; nil for NULL and 0.
  fileprivate init?(_ id: UnsafePointer<UInt8>?, _ changeCount: UInt64) throws(CallFailure) {
    guard unsafe (id == nil) == (changeCount == 0) else { throw .argument }
    guard let id = unsafe id else { return nil }
    unsafe self.init(id: Array(UnsafeBufferPointer(start: id, count: Int(HF_STATE_ID_BYTES))), changeCount: changeCount)
  }
}

/// A store of the caller's.
@safe private final class CallerStore: AuthenticatorStore, @unchecked Sendable {
  private let functions: hf_store_t

  init(_ pointer: UnsafePointer<hf_store_t>?) throws(CallFailure) {
    guard let functions = unsafe pointer?.pointee, unsafe functions.load != nil, unsafe functions.replace != nil else {
      throw .argument
    }
    unsafe self.functions = functions
  }

  func load() throws(AuthenticatorFault) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: Int(HF_STATE_BYTES))
    var byteCount = bytes.count
    let result = unsafe bytes.withUnsafeMutableBufferPointer { memory in
      unsafe functions.load(functions.context, memory.baseAddress, &byteCount)
    }
    try Self.check(result)
    guard (0...bytes.count).contains(byteCount) else { throw .corrupt }
    return byteCount == 0 ? nil : Array(bytes[..<byteCount])
  }

  func replace(_ old: [UInt8]?, with new: [UInt8]) throws(AuthenticatorFault) {
    let result = unsafe (old ?? []).withUnsafeBufferPointer { old in
      unsafe new.withUnsafeBufferPointer { new in
        unsafe functions.replace(functions.context, old.baseAddress, old.count, new.baseAddress, new.count)
      }
    }
    try Self.check(result)
  }

  private static func check(_ result: CInt) throws(AuthenticatorFault) {
    switch hf_error(rawValue: result) {
    case _ where result == 0: return
    case HF_ERROR_BUSY: throw .busy
    case HF_ERROR_FULL: throw .diskFull
    case HF_ERROR_PERMISSION: throw .tooOpen
    case HF_ERROR_DAMAGED: throw .corrupt
    default: throw .failed
    }
  }
}
