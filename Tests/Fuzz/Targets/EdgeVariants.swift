/// Returns inputs that differ from one that is kept in one number, in the length of one word or string, or in the number of elements
/// of one list, the same ones each time. Numbers, lengths and counts are at limits.
///
/// - Parameters:
///   - bytes: The input, as text or CBOR.
///   - limits: The limits; each number, and those beside it, are tried.
///   - count: The highest number of variants.
///   - byteLimit: The length of the longest variant.
package func edgeVariants(of bytes: [UInt8], limits: [UInt64], count: Int, byteLimit: Int) -> [[UInt8]] {
  let edges = Set(limits.flatMap { [$0 == 0 ? 0 : $0 - 1, $0, $0 &+ 1] }).sorted()
  let lengths = edges.filter { $0 <= UInt64(byteLimit) }
  let places = edgePlaces(in: bytes)
  let numbers = places.filter(\.isNumber)
  let others = places.filter { !$0.isNumber }
  let numberCount = numbers.count * edges.count
  // Inputs of one shape have different variants.
  let start = bytes.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xffff }
  return spread(count, over: numberCount + others.count * lengths.count, from: start).compactMap { index in
    let isNumber = index < numberCount
    let (places, edges) = isNumber ? (numbers, edges) : (others, lengths)
    let (place, edge) = (isNumber ? index : index - numberCount).quotientAndRemainder(dividingBy: edges.count)
    return places[place].replaced(in: bytes, by: edges[edge], byteLimit: byteLimit)
  }
}

/// Returns inputs of which one number is higher by 2^8, 2^16 or 2^32, the same ones each time: a reader that keeps fewer bits of it reads
/// what it read before.
///
/// - Parameters:
///   - bytes: The input, as text or CBOR.
///   - count: The highest number of variants.
///   - byteLimit: The length of the longest variant.
package func wideVariants(of bytes: [UInt8], count: Int, byteLimit: Int) -> [[UInt8]] {
  let numbers = edgePlaces(in: bytes).compactMap { place in place.number(in: bytes).map { (place, $0) } }
  return spread(count, over: numbers.count * 3).compactMap { index in
    let ((place, number), width) = (numbers[index / 3], [8, 16, 32][index % 3])
    return place.replaced(in: bytes, by: number &+ 1 << width, byteLimit: byteLimit)
  }
}

/// Limits that readers often have.
package let usualLimits: [UInt64] =
  [0, 10, 12, 24, 31, 60, 100, 253, 366, 1000] + (1...16).map { 1 << $0 } + [1 << 31, 1 << 32, 1 << 53, 1 << 63, .max]

/// Returns texts of which one word has another character in its middle, the same ones each time; none if the input is no text.
///
/// - Parameters:
///   - bytes: The input.
///   - limits: Those that are Unicode scalars beyond ASCII are tried, too, with those beside them.
///   - count: The highest number of variants.
package func characterVariants(of bytes: [UInt8], limits: [UInt64] = [], count: Int) -> [[UInt8]] {
  let middles = wordRanges(in: bytes).map { ($0.lowerBound + $0.upperBound) / 2 }
  let scalars = Set(limits.flatMap { [$0 &- 1, $0, $0 &+ 1] }).sorted().compactMap { limit in
    limit < 0x80 ? nil : UInt32(exactly: limit).flatMap(Unicode.Scalar.init)
  }
  let characters = (0..<0x80 as Range<UInt8>).map { [$0] } + [[0x80], [0xff]] + scalars.map { Array(String($0).utf8) }
  return spread(count, over: middles.count * characters.count).map { index in
    let middle = middles[index / characters.count]
    var variant = bytes
    variant.replaceSubrange(middle..<middle + 1, with: characters[index % characters.count])
    return variant
  }
}

/// Returns texts of which one word has other characters at its end, in place of padding: in base64 and hexadecimal digits, these are one to
/// three bytes more.
package func wordEndVariants(of bytes: [UInt8], count: Int) -> [[UInt8]] {
  let words = wordRanges(in: bytes).filter { $0.count >= 8 }
  let ends = ["A", "AA", "AAA", "AAAA", "00"].map { Array($0.utf8) }
  return spread(count, over: words.count * ends.count).map { index in
    let end = words[index / ends.count].upperBound
    let padding = bytes[end...].prefix { $0 == UInt8(ascii: "=") }
    return bytes[..<end] + ends[index % ends.count] + bytes[padding.endIndex...]
  }
}

/// The words of a text; none if the input is no text.
private func wordRanges(in bytes: [UInt8]) -> [Range<Int>] {
  guard isText(bytes) else { return [] }
  return edgePlaces(in: bytes).compactMap { place in
    if case .word(let range) = place.kind { range } else { nil }
  }
}

extension EdgePlace {
  /// The number in this place, if it is one in digits or an integer of CBOR.
  fileprivate func number(in bytes: [UInt8]) -> UInt64? {
    switch kind {
    case .digits(let range): UInt64(String(decoding: bytes[range], as: UTF8.self))
    case .integer(let range): bytes[range].headNumber
    case .word, .value, .element, .string, .items, .byte: nil
    }
  }

  /// Returns the input with another number, length or count in this place; nil if it is too long.
  fileprivate func replaced(in bytes: [UInt8], by edge: UInt64, byteLimit: Int) -> [UInt8]? {
    guard let (range, content) = replacement(in: bytes, by: edge, byteLimit: byteLimit) else { return nil }
    var variant = bytes
    variant.replaceSubrange(range, with: content)
    var growth = content.count - range.count
    for frame in frames.reversed() {
      let head = itemHead(like: bytes[frame.head.lowerBound], UInt64(frame.content.count + growth))
      variant.replaceSubrange(frame.head, with: head)
      growth += head.count - frame.head.count
    }
    return variant.count <= byteLimit ? variant : nil
  }

  private func replacement(in bytes: [UInt8], by edge: UInt64, byteLimit: Int) -> (Range<Int>, [UInt8])? {
    switch kind {
    case .digits(let range):
      let digits = Array(String(edge).utf8)
      // A number of two digits, or one that begins with a zero, keeps its width.
      let isPadded = range.count == 2 || bytes[range.lowerBound] == 0x30
      let padding = isPadded ? max(range.count - digits.count, 0) : 0
      return (range, [UInt8](repeating: 0x30, count: padding) + digits)
    case .word(let range): return (range, bytes[range].repeated(to: Int(edge)))
    case .value(let range):
      let brackets = "[]".utf8.map { [UInt8](repeating: $0, count: Int(edge)) }
      return (range, brackets[0] + bytes[range] + brackets[1])
    case .element(let range, let separator):
      guard Int(edge) * (range.count + 1) <= byteLimit else { return nil }
      guard edge > 0 else { return (range.with(separator, in: bytes), []) }
      let copies = (0..<Int(edge)).map { number in bytes[range].counted(number) }
      return (range, Array(copies.joined(separator: [separator])))
    case .integer(let range): return (range, itemHead(like: bytes[range.lowerBound], edge))
    case .string(let head, let content):
      let string = itemHead(like: bytes[head.lowerBound], edge) + bytes[content].repeated(to: Int(edge))
      return (head.lowerBound..<content.upperBound, string)
    case .items(let head, let items):
      let last = items[items.count - 1]
      guard (Int(edge) - items.count) * last.range.count <= byteLimit else { return nil }
      let kept = items.prefix(Int(edge)).flatMap { bytes[$0.range] }
      let copies = (items.count..<max(items.count, Int(edge))).flatMap { number in
        last.copy(of: bytes, counted: number - items.count + 1)
      }
      return (head.lowerBound..<last.range.upperBound, itemHead(like: bytes[head.lowerBound], edge) + kept + copies)
    case .byte(let index): return edge < 0x100 ? (index..<index + 1, [UInt8(edge)]) : nil
    }
  }
}

extension Range<Int> {
  /// The range with the separator after it, or else before it.
  fileprivate func with(_ separator: UInt8, in bytes: [UInt8]) -> Range<Int> {
    if upperBound < bytes.count, bytes[upperBound] == separator { return lowerBound..<upperBound + 1 }
    if lowerBound > 0, bytes[lowerBound - 1] == separator { return lowerBound - 1..<upperBound }
    return self
  }
}

extension EdgePlace.Item {
  /// Returns the item, of which one integer is higher by `number`, or the end of one string counts.
  fileprivate func copy(of bytes: [UInt8], counted number: Int) -> [UInt8] {
    guard let (counter, isInteger) = counter else { return Array(bytes[range]) }
    let counted =
      if isInteger {
        itemHead(like: bytes[counter.lowerBound], bytes[counter].headNumber &+ UInt64(number))
      } else { bytes[counter].counted(number) }
    return bytes[range.lowerBound..<counter.lowerBound] + counted + bytes[counter.upperBound..<range.upperBound]
  }
}

extension ArraySlice<UInt8> {
  /// The bytes again and again, or the first of them; `a` in place of none.
  fileprivate func repeated(to count: Int) -> [UInt8] {
    (0..<count).map { isEmpty ? 0x61 : self[startIndex + $0 % self.count] }
  }

  /// The bytes, of which four digits or letters, or the last byte, are as `number` steps later: lists often refuse repetitions, or demand
  /// an order. The four are in the middle, because the last of a text in base64 cannot be any; but at the end of what has members.
  fileprivate func counted(_ number: Int) -> [UInt8] {
    var copy = Array(self)
    let isWord = ["true", "false", "null"].contains { copy.suffix($0.utf8.count).elementsEqual($0.utf8) }
    guard !isWord else { return copy }
    let all = copy.indices.filter { copy[$0].alphabet != nil }
    if all.isEmpty, let last = copy.popLast() { return copy + [last &+ UInt8(truncatingIfNeeded: number)] }
    let places = copy.contains(UInt8(ascii: ":")) ? all[...] : all.prefix(all.count / 2 + 2)
    var rest = number
    for place in places.suffix(4).reversed() {
      guard let alphabet = copy[place].alphabet else { continue }
      rest += Int(copy[place] - alphabet.lowerBound)
      copy[place] = alphabet.lowerBound + UInt8(rest % alphabet.count)
      rest /= alphabet.count
    }
    return copy
  }

  /// The number in a head of CBOR.
  fileprivate var headNumber: UInt64 {
    count == 1 ? UInt64(self[startIndex] & 0x1f) : dropFirst().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension UInt8 {
  /// The digits, if it is one, or the letters of its case.
  fileprivate var alphabet: ClosedRange<UInt8>? {
    switch self {
    case 0x30...0x39: 0x30...0x39
    case 0x41...0x5a: 0x41...0x5a
    case 0x61...0x7a: 0x61...0x7a
    default: nil
    }
  }
}

/// Returns the shortest head of an item of CBOR with the major type of another head.
///
/// Source: RFC 8949, section 3.
private func itemHead(like byte: UInt8, _ number: UInt64) -> [UInt8] {
  let byteCount = number < 24 ? 0 : number < 0x100 ? 1 : number < 0x1_0000 ? 2 : number < 0x1_0000_0000 ? 4 : 8
  let information = byteCount == 0 ? UInt8(number) : 24 + UInt8(byteCount.trailingZeroBitCount)
  return [byte & 0xe0 | information]
    + (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
}
