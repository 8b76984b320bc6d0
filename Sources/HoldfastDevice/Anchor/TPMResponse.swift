import HoldfastCore

/// What a TPM answered to a command with one password session, read strictly.
///
/// Source: TPM 2.0 Library, Part 1 §18.
enum TPMResponse: Equatable {
  case success(parameters: [UInt8])
  case failure(TPMResponseCode)

  /// The size of tag, size and response code.
  static let headByteCount = 10
  /// None that is asked for here is longer.
  static let maximumByteCount = 64

  /// How many bytes it says that it has; nil unless that may be. `head` has 10 bytes or more.
  static func byteCount(of head: Span<UInt8>) -> Int? {
    let count = head.bigEndian(at: 2)
    return (UInt32(headByteCount)...UInt32(maximumByteCount)).contains(count) ? Int(count) : nil
  }

  /// Throws `malformed` unless `bytes` are one whole response: a failure is a head alone, a success has parameters and the
  /// empty session of a password.
  init(_ bytes: Span<UInt8>) throws(CounterFault) {
    guard bytes.count >= Self.headByteCount, Self.byteCount(of: bytes) == bytes.count else { throw .malformed }
    let tag = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    let code = bytes.bigEndian(at: 6)
    guard code == 0 else {
      guard tag == 0x8001, bytes.count == Self.headByteCount else { throw .malformed }
      self = .failure(TPMResponseCode(rawValue: code))
      return
    }
    let session: InlineArray<5, UInt8> = [0, 0, 1, 0, 0]
    guard tag == 0x8002, bytes.count >= 14 + session.count,
      bytes.bigEndian(at: 10) == UInt32(bytes.count - 14 - session.count),
      bytes.extracting((bytes.count - session.count)...).elementsEqual(session.span)
    else { throw .malformed }
    self = .success(parameters: Array(bytes.extracting(14..<bytes.count - session.count)))
  }
}

extension Span where Element == UInt8 {
  /// The four bytes from `offset` on, most significant first.
  fileprivate func bigEndian(at offset: Int) -> UInt32 {
    (0..<4).reduce(0) { $0 << 8 | UInt32(self[offset + $1]) }
  }
}
