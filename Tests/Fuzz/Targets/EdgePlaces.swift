/// A place in an input that can have another number, another length, or more or fewer elements.
struct EdgePlace {
  /// The number, the word or the list.
  enum Kind {
    /// Decimal digits.
    case digits(Range<Int>)
    /// A word of a text.
    case word(Range<Int>)
    /// A value in JSON, which can lie in further arrays.
    case value(Range<Int>)
    /// An element of a list in a text, and the byte between it and others.
    case element(Range<Int>, separator: UInt8)
    /// An integer of CBOR.
    case integer(Range<Int>)
    /// A string of CBOR.
    case string(head: Range<Int>, content: Range<Int>)
    /// An array or a map of CBOR that is not empty, and its elements or pairs.
    case items(head: Range<Int>, [Item])
    /// A byte of what is neither text nor CBOR.
    case byte(Int)
  }

  /// An element of an array or a pair of a map, and the first of its integers (the head) or strings (the content), which can count.
  struct Item {
    let range: Range<Int>
    let counter: (range: Range<Int>, isInteger: Bool)?
  }

  /// A byte string of CBOR around a place.
  struct Frame {
    let head: Range<Int>
    let content: Range<Int>
  }

  let kind: Kind
  /// The byte strings around it, from the outermost.
  var frames: [Frame] = []

  var isNumber: Bool {
    switch kind {
    case .digits, .integer, .byte: true
    case .word, .value, .element, .string, .items: false
    }
  }
}

/// Finds the places in an input: in a text, in a sequence of items of CBOR, or else in bytes that can have any meaning.
func edgePlaces(in bytes: [UInt8]) -> [EdgePlace] {
  if isText(bytes) { return (words(in: bytes) + elements(in: bytes)).map { EdgePlace(kind: $0) } }
  var items = Items(bytes: bytes)
  return items.collect(bytes.indices, depth: 0) ? items.places : bytes.indices.map { EdgePlace(kind: .byte($0)) }
}

/// Whether the bytes are UTF-8 without control characters.
func isText(_ bytes: [UInt8]) -> Bool {
  bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
    && String(validating: bytes, as: UTF8.self) != nil
}

// MARK: Text

/// Finds words, their parts, and the numbers in words of at most 24 characters: longer ones are keys and digests.
private func words(in bytes: [UInt8]) -> [EdgePlace.Kind] {
  let words = runs(in: bytes, bytes.indices) { !"\"'`,;:=&?/\\(){}[]<>#@| \t\r\n".utf8.contains($0) }
  let parts = words.flatMap { word in
    let parts = runs(in: bytes, word) { !".-_+".utf8.contains($0) }
    return parts.count > 1 ? parts : []
  }
  let numbers = words.filter { $0.count <= 24 }.flatMap { word in runs(in: bytes, word) { 0x30...0x39 ~= $0 } }
  let values = bytes.first.map { "[{".utf8.contains($0) } == true ? numbers : []
  return numbers.map { .digits($0) } + (words + parts).map { .word($0) } + values.map { .value($0) }
}

/// The longest ranges all of whose bytes belong together.
private func runs(in bytes: [UInt8], _ range: Range<Int>, of belongs: (UInt8) -> Bool) -> [Range<Int>] {
  var runs: [Range<Int>] = []
  var start = range.lowerBound
  for index in range.lowerBound...range.upperBound where index == range.upperBound || !belongs(bytes[index]) {
    if start < index { runs.append(start..<index) }
    start = index + 1
  }
  return runs
}

/// Finds the elements of lists: between commas within brackets; and outside of brackets also lines and the parts of a form.
private func elements(in bytes: [UInt8]) -> [EdgePlace.Kind] {
  var places: [EdgePlace.Kind] = []
  // Where the present element of each open bracket begins.
  var starts = [0]
  var outerSeparator: UInt8?
  var isQuoted = false
  func end(at index: Int, _ separator: UInt8) {
    let range = starts[starts.count - 1]..<index
    if !range.isEmpty { places.append(.element(range, separator: separator)) }
  }
  for (index, byte) in bytes.enumerated() {
    if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
    guard !isQuoted else { continue }
    switch byte {
    case UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: "("): starts.append(index + 1)
    case UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: ")"):
      end(at: index, UInt8(ascii: ","))
      if starts.count > 1 { starts.removeLast() } else { starts = [index + 1] }
    case UInt8(ascii: ","),
      UInt8(ascii: "&") where starts.count == 1,
      UInt8(ascii: "\n") where starts.count == 1:
      if starts.count == 1 { outerSeparator = byte }
      end(at: index, byte)
      starts[starts.count - 1] = index + 1
    default: break
    }
  }
  if starts.count == 1, let outerSeparator { end(at: bytes.count, outerSeparator) }
  return places
}

// MARK: CBOR

/// The places of items, also of those in byte strings that hold nothing else.
///
/// Source: RFC 8949, section 3.
private struct Items {
  let bytes: [UInt8]
  var places: [EdgePlace] = []
  private var frames: [EdgePlace.Frame] = []
  /// The first integer or string since the present element began.
  private var counter: (range: Range<Int>, isInteger: Bool)?

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Collects the places of the items in a range. Returns false at the first byte that begins no item; the places before it stay.
  mutating func collect(_ range: Range<Int>, depth: Int) -> Bool {
    var index = range.lowerBound
    while index < range.upperBound {
      guard let end = collectItem(at: index, in: range, depth: depth) else { return false }
      index = end
    }
    return true
  }

  /// Returns the end of an item.
  private mutating func collectItem(at start: Int, in range: Range<Int>, depth: Int) -> Int? {
    guard start < range.upperBound, depth < 16 else { return nil }
    let (major, information) = (bytes[start] >> 5, Int(bytes[start] & 0x1f))
    guard information < 28 else { return nil }
    let head = start..<start + 1 + (information < 24 ? 0 : 1 << (information - 24))
    guard head.upperBound <= range.upperBound else { return nil }
    let following = bytes[head].dropFirst().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    let number = information < 24 ? UInt64(information) : following
    if 2...5 ~= major { guard number <= UInt64(range.upperBound - head.upperBound) else { return nil } }
    switch major {
    case 0, 1:
      append(.integer(head))
      counter = counter ?? (head, true)
    case 2, 3:
      let content = head.upperBound..<head.upperBound + Int(number)
      append(.string(head: head, content: content))
      if major == 2, content.count > 1 { collectInner(EdgePlace.Frame(head: head, content: content), depth: depth + 1) }
      if !content.isEmpty { counter = counter ?? (content, false) }
      return content.upperBound
    case 4, 5: return collectItems(count: number, isMap: major == 5, head: head, in: range, depth: depth + 1)
    case 6: return collectItem(at: head.upperBound, in: range, depth: depth + 1)
    default: break
    }
    return head.upperBound
  }

  private mutating func collectItems(
    count: UInt64, isMap: Bool, head: Range<Int>, in range: Range<Int>, depth: Int
  ) -> Int? {
    var items: [EdgePlace.Item] = []
    var end = head.upperBound
    for _ in 0..<count {
      counter = nil
      guard var next = collectItem(at: end, in: range, depth: depth) else { return nil }
      if isMap {
        guard let value = collectItem(at: next, in: range, depth: depth) else { return nil }
        next = value
      }
      items.append(EdgePlace.Item(range: end..<next, counter: counter))
      end = next
    }
    counter = items.first?.counter
    if !items.isEmpty { append(.items(head: head, items)) }
    return end
  }

  /// Collects the places within a byte string, if it holds items and nothing else.
  private mutating func collectInner(_ frame: EdgePlace.Frame, depth: Int) {
    let (count, counter) = (places.count, counter)
    frames.append(frame)
    if !collect(frame.content, depth: depth) { places.removeSubrange(count...) }
    frames.removeLast()
    self.counter = counter
  }

  private mutating func append(_ kind: EdgePlace.Kind) { places.append(EdgePlace(kind: kind, frames: frames)) }
}
