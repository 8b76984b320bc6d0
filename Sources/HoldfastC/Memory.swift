import CHoldfast
import Glibc
import HoldfastCore

/// A buffer of the caller: its memory, and the length that is its size before the call and the number of bytes after it.
@safe struct CallerBuffer {
  private let memory: UnsafeMutableRawPointer?
  private let length: UnsafeMutablePointer<Int>

  /// Checks the pointers. The memory may be NULL if the length is 0.
  init(_ memory: UnsafeMutableRawPointer?, _ length: UnsafeMutablePointer<Int>?) throws(CallFailure) {
    guard let length = unsafe length, unsafe memory != nil || length.pointee == 0 else { throw .argument }
    unsafe (self.memory, self.length) = (memory, length)
  }

  /// Checks that `count` bytes fit, before a call begins work that cannot be repeated.
  func require(_ count: Int) throws(CallFailure) {
    // A size above Int.max, which Swift reads as a negative number, is large enough.
    guard unsafe 0 <= length.pointee, unsafe length.pointee < count else { return }
    unsafe length.pointee = count
    throw CallFailure(HF_ERROR_BUFFER)
  }

  /// Writes the bytes and their number.
  func write(_ bytes: Span<UInt8>) throws(CallFailure) {
    try require(bytes.count)
    if let memory = unsafe memory {
      unsafe bytes.withUnsafeBytes {
        unsafe memory.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: $0.count)
      }
    }
    unsafe length.pointee = bytes.count
  }

  /// Writes a text and its NUL.
  func write(text: [UInt8]) throws(CallFailure) { try write((text + [0]).span) }
}

/// The texts and values that a call gets. Each is read once, and copied.
enum Input {
  /// Reads a text of 1 to `maximum` bytes, which must be UTF-8.
  static func text(_ pointer: UnsafePointer<CChar>?, maximum: Int) throws(CallFailure) -> String {
    let bytes = try unsafe textBytes(pointer, maximum: maximum)
    guard !bytes.isEmpty, isValidUTF8(bytes.span) else { throw .argument }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads a text of 1 to `capacity` bytes.
  static func boundedText<let capacity: Int>(
    _ pointer: UnsafePointer<CChar>?, _: BoundedText<capacity>.Type = BoundedText<capacity>.self
  ) throws(CallFailure) -> BoundedText<capacity> {
    let bytes = try unsafe textBytes(pointer, maximum: capacity)
    guard !bytes.isEmpty, let text = BoundedText<capacity>(bytes.span) else { throw .argument }
    return text
  }

  /// The longest path of a folder or endpoint, in bytes.
  static let maximumPathByteCount = 4095

  /// Reads the bytes before the NUL, at most `maximum`.
  static func textBytes(_ pointer: UnsafePointer<CChar>?, maximum: Int) throws(CallFailure) -> [UInt8] {
    guard let pointer = unsafe pointer else { throw .argument }
    let count = unsafe strnlen(pointer, maximum + 1)
    guard count <= maximum else { throw .argument }
    return try unsafe bytes(UnsafeRawPointer(pointer), count, in: 0...maximum)
  }

  /// Copies `count` bytes, whose number must be in `range`.
  static func bytes(
    _ pointer: UnsafeRawPointer?, _ count: Int, in range: ClosedRange<Int>
  ) throws(CallFailure) -> [UInt8] {
    guard let pointer = unsafe pointer, range.contains(count) else { throw .argument }
    return unsafe [UInt8](UnsafeRawBufferPointer(start: pointer, count: count))
  }

  /// Reads a device's id; nil for NULL.
  static func deviceID(_ pointer: UnsafePointer<UInt8>?) -> DeviceID? {
    guard let pointer = unsafe pointer else { return nil }
    return unsafe DeviceID([UInt8](UnsafeBufferPointer(start: pointer, count: Int(HF_DEVICE_ID_BYTES))).span)
  }

  /// Whether the flag to replace is set; flags other than this and `others` are refused.
  static func isReplacing(_ flags: UInt32, others: UInt32 = 0) throws(CallFailure) -> Bool {
    guard flags & ~(HF_REPLACE | others) == 0 else { throw .argument }
    return flags & HF_REPLACE != 0
  }
}

extension Input {
  /// Reads a request and its codes.
  static func request(_ pointer: UnsafePointer<hf_request_t>?) throws(CallFailure) -> Request {
    guard let given = unsafe pointer?.pointee else { throw .argument }
    var request = Request(command: try unsafe boundedText(given.command))
    for text in try unsafe parameters(given) {
      guard let parameter = BoundedText<64>(text) else { throw .argument }
      try converting({ _ in .argument }) { () throws(EncodingFault) in try request.append(parameter: parameter) }
    }
    let hasCodes = unsafe given.otp != nil || given.seal != nil
    guard unsafe hasCodes == (given.user != nil) else { throw .argument }
    guard hasCodes else { return request }
    let user: BoundedText<32> = try unsafe boundedText(given.user)
    if unsafe given.otp != nil { request.codes[.otp] = UserCode(user: user, code: try unsafe code(given.otp)) }
    if unsafe given.seal != nil { request.codes[.seal] = UserCode(user: user, code: try unsafe code(given.seal)) }
    return request
  }

  private static func code(_ pointer: UnsafePointer<CChar>?) throws(CallFailure) -> BoundedText<16> {
    let code: BoundedText<16> = try unsafe boundedText(pointer)
    for index in code.bytes.indices where !(0x30...0x39).contains(code.bytes[index]) { throw .argument }
    return code
  }

  /// Reads the parameters of a request, each at most 64 bytes of UTF-8.
  static func parameters(_ request: hf_request_t) throws(CallFailure) -> [String] {
    let count = unsafe request.parameter_count
    guard (0...Int(HF_PARAMETER_COUNT)).contains(count) else { throw .argument }
    guard count > 0 else { return [] }
    guard let list = unsafe request.parameters else { throw .argument }
    var texts: [String] = []
    for index in 0..<count {
      let bytes = try unsafe textBytes(list[index], maximum: 64)
      guard isValidUTF8(bytes.span) else { throw .argument }
      texts.append(String(decoding: bytes, as: UTF8.self))
    }
    return texts
  }
}
