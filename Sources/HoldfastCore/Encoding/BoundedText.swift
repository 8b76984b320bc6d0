/// UTF-8 text of at most `capacity` bytes, stored inline, for a command, a user or a component's id.
public struct BoundedText<let capacity: Int>: Sendable {
  @usableFromInline var storage: InlineArray<capacity, UInt8>
  @usableFromInline var length: UInt8

  /// Creates an empty text.
  public init() {
    storage = InlineArray(repeating: 0)
    length = 0
  }

  /// Copies `bytes`; nil if there are more than `capacity`, or if they are not UTF-8 (RFC 3629).
  public init?(_ bytes: Span<UInt8>) {
    guard bytes.count <= capacity, capacity <= 255, isValidUTF8(bytes) else { return nil }
    storage = InlineArray { $0 < bytes.count ? bytes[$0] : 0 }
    length = UInt8(bytes.count)
  }

  /// Copies `text`, which must have at most `capacity` bytes of UTF-8.
  public init(_ text: StaticString) {
    self.init()
    precondition(text.utf8CodeUnitCount <= min(capacity, 255))
    for index in 0..<text.utf8CodeUnitCount { storage[index] = unsafe text.utf8Start[index] }
    length = UInt8(text.utf8CodeUnitCount)
  }

  /// The text's UTF-8 bytes.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    @_transparent
    get { storage.span.extracting(0..<Int(length)) }
  }

  /// Whether the text has no bytes.
  public var isEmpty: Bool { length == 0 }
}

extension BoundedText: Hashable {
  /// Returns whether both hold the same bytes. Not constant-time.
  public static func == (left: BoundedText, right: BoundedText) -> Bool {
    left.bytes.elementsEqual(right.bytes)
  }

  /// Feeds the bytes to `hasher`.
  public func hash(into hasher: inout Hasher) {
    let bytes = bytes
    for index in bytes.indices { hasher.combine(bytes[index]) }
  }
}

#if !hasFeature(Embedded)
extension BoundedText {
  /// Copies `text`; nil if its UTF-8 has more than `capacity` bytes.
  public init?(_ text: String) {
    self.init(Array(text.utf8).span)
  }
}

extension BoundedText: CustomStringConvertible {
  /// The text as a string.
  public var description: String {
    var utf8: [UInt8] = []
    for index in 0..<Int(length) { utf8.append(storage[index]) }
    return String(decoding: utf8, as: UTF8.self)
  }
}
#endif

/// Returns whether `bytes` are well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
///
/// Source: RFC 3629 §4. Timing: it reveals which bytes are ASCII, and nothing about these.
package func isValidUTF8(_ bytes: Span<UInt8>) -> Bool {
  #if !hasFeature(Embedded)
  var all: UInt8 = 0
  for index in bytes.indices { all |= bytes[index] }
  guard hasBits(all, 0x80) else { return true }
  #endif
  var index = 0
  while index < bytes.count {
    guard let length = sequenceLength(bytes, at: index) else { return false }
    index += length
  }
  return true
}

/// Returns the length of the sequence that starts at `index`, 1 to 4; nil if it is not well-formed.
private func sequenceLength(_ bytes: Span<UInt8>, at index: Int) -> Int? {
  let lead = bytes[index]
  if !hasBits(lead, 0x80) { return 1 }
  let length: Int
  var second: ClosedRange<UInt8> = 0x80...0xbf
  switch lead {
  case 0xc2...0xdf: length = 2
  case 0xe0...0xef: length = 3
  case 0xf0...0xf4: length = 4
  default: return nil
  }
  switch lead {
  case 0xe0: second = 0xa0...0xbf
  case 0xed: second = 0x80...0x9f
  case 0xf0: second = 0x90...0xbf
  case 0xf4: second = 0x80...0x8f
  default: break
  }
  guard bytes.count - index >= length, second.contains(bytes[index + 1]) else { return nil }
  for offset in 2..<max(length, 2) where bytes[index + offset] & 0xc0 != 0x80 { return nil }
  return length
}
