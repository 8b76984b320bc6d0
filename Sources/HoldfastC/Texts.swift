import CHoldfast
import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastVersion

/// Returns a text for a status or an error; see the header.
@c @implementation public func hf_text(_ result: CInt) -> UnsafePointer<CChar>? {
  // The compiler puts a NUL behind the text, which is never freed.
  unsafe UnsafeRawPointer(text(of: result).utf8Start).assumingMemoryBound(to: CChar.self)
}

/// Writes the version; see the header.
@c @implementation public func hf_version(
  _ text: UnsafeMutablePointer<CChar>?, _ length: UnsafeMutablePointer<Int>?
) -> CInt {
  call { () throws(CallFailure) in
    try unsafe CallerBuffer(text, length).write(text: Array(HoldfastVersion.description.utf8))
    return 0
  }
}

/// Protects this process from being read by others; see the header.
@c @implementation public func hf_protect_process() -> CInt {
  ProcessFiles.keepOpen()
  return ProcessHardening.apply() ? 0 : HF_ERROR_SYSTEM.rawValue
}

extension CallFailure {
  /// The text of the error.
  var text: String { HoldfastC.text(of: result).description }
}

private func text(of result: CInt) -> StaticString {
  if let raw = UInt8(exactly: result), let status = Status(rawValue: raw) { return status.text }
  return errorText(hf_error(rawValue: result)) ?? "no such result"
}

private func errorText(_ error: hf_error) -> StaticString? {
  switch error {
  case HF_ERROR_ARGUMENT: "an argument is not valid"
  case HF_ERROR_BUFFER: "the buffer is too small"
  case HF_ERROR_ORDER: "the call is out of order"
  case HF_ERROR_BUSY: "another thread or process is using it"
  case HF_ERROR_CANCELLED: "cancelled"
  case HF_ERROR_MISSING: "the folder or a file in it is missing"
  case HF_ERROR_KIND: "the folder is of another kind"
  case HF_ERROR_VERSION: "the folder was written by another version"
  case HF_ERROR_DAMAGED: "the folder is damaged"
  case HF_ERROR_PERMISSION:
    "the system refuses access, the file system is read-only, or the folder is open to other users"
  case HF_ERROR_FULL: "the disk is full"
  case HF_ERROR_SYSTEM: "the system failed"
  case HF_ERROR_NOT_ENROLLED: "the device is not enrolled"
  case HF_ERROR_ENROLLED: "the device is enrolled already, or a baseline waits for its token"
  case HF_ERROR_NO_BASELINE: "no baseline waits for the token"
  case HF_ERROR_MEASUREMENT: "the app or its host could not be measured"
  case HF_ERROR_CONNECTION: "the connection could not be made, or was lost"
  case HF_ERROR_TIMEOUT: "the other end did not answer in time"
  case HF_ERROR_PROTOCOL: "the other end did not follow the protocol"
  case HF_ERROR_IMPOSTOR: "the other end did not prove that it is the enrolled device"
  case HF_ERROR_RECORD: "the authenticator has no such record, or several"
  case HF_ERROR_CODE: "the record cannot make the code"
  case HF_ERROR_CRYPTOGRAPHY: "the cryptographic library or the random source failed"
  case HF_ERROR_ANOTHER_DEVICE: "another device answers, or another key"
  case HF_ERROR_OWNER_CODE: "the device does not accept the owner's code"
  case HF_ERROR_EXISTS: "the authenticator has records of the user already"
  case HF_ERROR_UNKNOWN_END: "it is not known whether the device has added the user"
  case HF_ERROR_USER: "the device does not know the user"
  case HF_ERROR_PIN: "the new PIN is guessed too easily"
  case HF_ERROR_CHANGE: "the protection cannot be changed, undone or confirmed now, or the undo code is wrong"
  default: nil
  }
}
