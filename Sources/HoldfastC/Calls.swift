import CHoldfast
import HoldfastCore

/// The end of a call that did not do its work: what the header documents for it.
struct CallFailure: Error {
  /// The result of the call: the number of an error, or the status of a device's denial.
  let result: CInt

  init(_ code: hf_error) { result = code.rawValue }

  init(_ denial: Status) { result = denial.result }

  /// An argument is not what the header requires.
  static var argument: CallFailure { CallFailure(HF_ERROR_ARGUMENT) }
}

/// Runs a call of the C interface, and returns its result or the number of its failure.
func call(_ body: () throws(CallFailure) -> CInt) -> CInt {
  do throws(CallFailure) { return try body() } catch { return error.result }
}

/// Runs a function of a library, and converts its error.
func converting<Result: ~Copyable, Fault: Error>(
  _ failure: (Fault) -> CallFailure, _ body: () throws(Fault) -> Result
) throws(CallFailure) -> Result {
  do throws(Fault) { return try body() } catch { throw failure(error) }
}

extension Status {
  /// The status as a result.
  var result: CInt { CInt(rawValue) }
}

/// The objects behind the handles of C.
enum Handle {
  /// Gives `object` to C, and writes its handle.
  static func give(
    _ object: AnyObject, to handle: UnsafeMutablePointer<OpaquePointer?>
  ) {
    unsafe handle.pointee = OpaquePointer(Unmanaged.passRetained(object).toOpaque())
  }

  /// Returns the object of a handle that ``give(_:to:)`` wrote; C must not have taken it back.
  static func object<Object: AnyObject>(
    _ handle: OpaquePointer?, _: Object.Type = Object.self
  ) throws(CallFailure) -> Object {
    guard let handle = unsafe handle else { throw .argument }
    return unsafe Unmanaged<Object>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
  }

  /// Takes the object back from C; nothing for NULL.
  static func takeBack<Object: AnyObject>(_ handle: OpaquePointer?, _: Object.Type) {
    guard let handle = unsafe handle else { return }
    unsafe Unmanaged<Object>.fromOpaque(UnsafeRawPointer(handle)).release()
  }
}
