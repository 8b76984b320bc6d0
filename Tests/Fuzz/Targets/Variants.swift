/// Returns inputs that differ little from one that is kept, the same ones each time.
///
/// A corpus holds few inputs, each because it reaches something, and hardly those at both sides of a limit. At places all over the
/// input, a variant changes a byte, drops one, writes one twice, exchanges two, has another one before it, or ends there.
package func variants(of bytes: [UInt8], count: Int) -> [[UInt8]] {
  let kinds = 9
  guard !bytes.isEmpty else { return count > 0 ? [[0], [0xff]] : [] }
  return spread(count, over: kinds * bytes.count).map { index in
    let (place, kind) = (index / kinds, index % kinds)
    var variant = bytes
    switch kind {
    case 0: variant[place] &+= 1
    case 1: variant[place] &-= 1
    case 2: variant[place] ^= 1 << UInt8(place % 8)
    case 3: variant[place] = [0, 0xff, 0x30, 0x39, 0x41, 0x7f, 0x80, 0x20][place % 8]
    case 4: variant.remove(at: place)
    case 5: variant.insert(variant[place], at: place)
    case 6: variant.swapAt(place, (place + 1) % variant.count)
    case 7: variant.insert([0x00, 0x09, 0x0b, 0x0d, 0x20, 0x2c, 0x30, 0x80][place % 8], at: place)
    default: variant.removeLast(variant.count - place)
    }
    return variant
  }
}

/// Returns inputs that end or begin otherwise than one that is kept: without a byte, with another one, or with one more.
package func endVariants(of bytes: [UInt8]) -> [[UInt8]] {
  let others = [0x00, 0xff] + Array("\n ,-./:;=0A".utf8)
  return [Array(bytes.dropLast()), Array(bytes.dropFirst())]
    + others.flatMap { other in [bytes.dropLast() + [other], bytes + [other], [other] + bytes] }
}

/// Returns up to `count` different numbers below `total`, spread over all of them.
package func spread(_ count: Int, over total: Int, from start: Int = 0) -> [Int] {
  guard total > 0 else { return [] }
  // Steps by the golden section leave no part out, and without a common divisor, they pass each number once.
  var stride = max(total * 618 / 1000, 1)
  while greatestCommonDivisor(stride, total) != 1 { stride += 1 }
  return (0..<min(count, total)).map { (start + $0 * stride) % total }
}

private func greatestCommonDivisor(_ one: Int, _ other: Int) -> Int {
  other == 0 ? one : greatestCommonDivisor(other, one % other)
}
