/// UTF-8 text of at most `capacity` bytes, stored inline: a command, a user, a component's id.
public struct BoundedText<let capacity: Int>: Sendable {
  @usableFromInline var storage: InlineArray<capacity, UInt8>
  @usableFromInline var length: UInt8

  /// No text.
  public init() {
    storage = InlineArray(repeating: 0)
    length = 0
  }

  /// Copies `bytes`; nil when they are more than `capacity` or not UTF-8 (RFC 3629).
  public init?(_ bytes: Span<UInt8>) {
    guard bytes.count <= capacity, capacity <= 255, isValidUTF8(bytes) else { return nil }
    storage = InlineArray { $0 < bytes.count ? bytes[$0] : 0 }
    length = UInt8(bytes.count)
  }

  /// Copies `text`, which must fit.
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

  public var isEmpty: Bool { length == 0 }
}

extension BoundedText: Hashable {
  public static func == (left: BoundedText, right: BoundedText) -> Bool {
    left.bytes.elementsEqual(right.bytes)
  }

  public func hash(into hasher: inout Hasher) {
    let bytes = bytes
    for index in bytes.indices { hasher.combine(bytes[index]) }
  }
}

#if !hasFeature(Embedded)
  extension BoundedText {
    /// Copies `text`; nil when its UTF-8 is more than `capacity` bytes.
    public init?(_ text: String) {
      self.init(Array(text.utf8).span)
    }
  }

  extension BoundedText: CustomStringConvertible {
    public var description: String {
      var utf8: [UInt8] = []
      for index in 0..<Int(length) { utf8.append(storage[index]) }
      return String(decoding: utf8, as: UTF8.self)
    }
  }
#endif
