/// Returns inputs that differ little from one that is kept, the same ones each time.
///
/// A corpus holds few inputs, each because it reaches something, and hardly those at both sides of a limit. At places all over the
/// input, a variant changes a byte, drops one, writes one twice, exchanges two, or ends there.
package func variants(of bytes: [UInt8], count: Int) -> [[UInt8]] {
  let kinds = 8
  guard !bytes.isEmpty else { return count > 0 ? [[0], [0xff]] : [] }
  let total = kinds * bytes.count
  // Without a common divisor, a stride passes each kind at each place once.
  var stride = max(total / max(count, 1), 1)
  while greatestCommonDivisor(stride, total) != 1 { stride += 1 }
  return (0..<min(count, total)).map { number in
    let (place, kind) = (number * stride % total / kinds, number * stride % kinds)
    var variant = bytes
    switch kind {
    case 0: variant[place] &+= 1
    case 1: variant[place] &-= 1
    case 2: variant[place] ^= 1 << UInt8(place % 8)
    case 3: variant[place] = [0, 0xff, 0x30, 0x39, 0x41, 0x7f, 0x80, 0x20][place % 8]
    case 4: variant.remove(at: place)
    case 5: variant.insert(variant[place], at: place)
    case 6: variant.swapAt(place, (place + 1) % variant.count)
    default: variant.removeLast(variant.count - place)
    }
    return variant
  }
}

private func greatestCommonDivisor(_ one: Int, _ other: Int) -> Int {
  other == 0 ? one : greatestCommonDivisor(other, one % other)
}
