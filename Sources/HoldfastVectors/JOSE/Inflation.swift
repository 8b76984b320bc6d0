/// The decoder of DEFLATE, which `zip` in a JWE names. Source: RFC 1951; RFC 7516 §4.1.3.
struct Inflation {
  private let input: [UInt8]
  private var bitPosition = 0
  private var output: [UInt8] = []
  private let limit: Int

  /// Returns the decompressed bytes; nil if the data is malformed, does not end with its last block, or has more than
  /// `limit` bytes.
  static func inflate(_ input: [UInt8], limit: Int) -> [UInt8]? {
    var inflation = Inflation(input: input, limit: limit)
    do throws(Fault) { try inflation.run() } catch { return nil }
    return inflation.output
  }

  private struct Fault: Error {}

  private init(input: [UInt8], limit: Int) {
    self.input = input
    self.limit = limit
  }

  private mutating func run() throws(Fault) {
    var isLast = false
    while !isLast {
      isLast = try bits(1) == 1
      switch try bits(2) {
      case 0: try copyStored()
      case 1: try decode(literals: Self.fixedLiterals, distances: Self.fixedDistances)
      case 2:
        let (literals, distances) = try readCodes()
        try decode(literals: literals, distances: distances)
      default: throw Fault()
      }
    }
    guard (bitPosition + 7) / 8 == input.count else { throw Fault() }
  }

  private mutating func bits(_ count: Int) throws(Fault) -> Int {
    guard bitPosition + count <= 8 * input.count else { throw Fault() }
    var value = 0
    for offset in 0..<count {
      value |= Int(input[bitPosition >> 3] >> UInt8(bitPosition & 7) & 1) << offset
      bitPosition += 1
    }
    return value
  }

  private mutating func append(_ byte: UInt8) throws(Fault) {
    guard output.count < limit else { throw Fault() }
    output.append(byte)
  }

  private mutating func copyStored() throws(Fault) {
    bitPosition = (bitPosition + 7) & ~7
    let count = try bits(16)
    guard try bits(16) == count ^ 0xffff else { throw Fault() }
    for _ in 0..<count { try append(UInt8(try bits(8))) }
  }

  /// A canonical Huffman code. Source: RFC 1951 §3.2.2.
  private struct Code {
    private var counts = [Int](repeating: 0, count: 16)
    private var symbols: [Int] = []

    init(_ lengths: [Int]) throws(Fault) {
      for length in lengths { counts[length] += 1 }
      counts[0] = 0
      for length in 1..<16 {
        for (symbol, own) in lengths.enumerated() where own == length { symbols.append(symbol) }
      }
      var free = 1
      for length in 1..<16 {
        free = 2 * free - counts[length]
        guard free >= 0 else { throw Fault() }
      }
    }

    func symbol(_ nextBit: () throws(Fault) -> Int) throws(Fault) -> Int {
      var (code, first, index) = (0, 0, 0)
      for length in 1..<16 {
        code = try code << 1 | nextBit()
        if code - first < counts[length] { return symbols[index + code - first] }
        index += counts[length]
        first = (first + counts[length]) << 1
      }
      throw Fault()
    }
  }

  private static let fixedLiterals =
    [Int](repeating: 8, count: 144) + [Int](repeating: 9, count: 112) + [Int](repeating: 7, count: 24)
    + [Int](repeating: 8, count: 8)
  private static let fixedDistances = [Int](repeating: 5, count: 30)
  private static let orderOfLengths = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

  private mutating func symbol(_ code: Code) throws(Fault) -> Int {
    try code.symbol { () throws(Fault) in try bits(1) }
  }

  /// Reads the lengths of both codes. Source: RFC 1951 §3.2.7.
  private mutating func readCodes() throws(Fault) -> (literals: [Int], distances: [Int]) {
    let literalCount = try bits(5) + 257
    let distanceCount = try bits(5) + 1
    let lengthCount = try bits(4) + 4
    var lengths = [Int](repeating: 0, count: 19)
    for index in 0..<lengthCount { lengths[Self.orderOfLengths[index]] = try bits(3) }
    let code = try Code(lengths)
    var all: [Int] = []
    while all.count < literalCount + distanceCount {
      switch try symbol(code) {
      case 16:
        guard let last = all.last else { throw Fault() }
        all += [Int](repeating: last, count: 3 + (try bits(2)))
      case 17: all += [Int](repeating: 0, count: 3 + (try bits(3)))
      case 18: all += [Int](repeating: 0, count: 11 + (try bits(7)))
      case let length: all.append(length)
      }
    }
    guard all.count == literalCount + distanceCount else { throw Fault() }
    return (Array(all[..<literalCount]), Array(all[literalCount...]))
  }

  /// Decodes the symbols of one block. Source: RFC 1951 §3.2.5.
  private mutating func decode(literals: [Int], distances: [Int]) throws(Fault) {
    let (literalCode, distanceCode) = (try Code(literals), try Code(distances))
    while true {
      let literal = try symbol(literalCode)
      if literal == 256 { return }
      if literal < 256 {
        try append(UInt8(literal))
        continue
      }
      guard literal < 286 else { throw Fault() }
      let length = try length(literal - 257)
      let index = try symbol(distanceCode)
      guard index < 30 else { throw Fault() }
      let extra = max(0, index / 2 - 1)
      let distance = (index < 2 ? index : (2 + index & 1) << extra) + 1 + (try bits(extra))
      guard distance <= output.count else { throw Fault() }
      for _ in 0..<length { try append(output[output.count - distance]) }
    }
  }

  private mutating func length(_ index: Int) throws(Fault) -> Int {
    if index < 8 { return index + 3 }
    if index == 28 { return 258 }
    let extra = index / 4 - 1
    return (4 + index & 3) << extra + 3 + (try bits(extra))
  }
}
