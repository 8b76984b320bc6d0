import TestSupport

/// Compares as no code of Holdfast does: it ends at the first byte that differs.
func plantedEarlyExit() -> Bool {
  let secret: [UInt8] = marked([UInt8](repeating: 7, count: 32))
  return endsEarly(secret, [UInt8](repeating: 7, count: 32))
}

@inline(never)
private func endsEarly(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  for index in left.indices where left[index] != right[index] { return false }
  return true
}

/// Looks a secret up in a table.
func plantedTable() -> Bool {
  let secret: [UInt8] = marked([3])
  let found = looksUp(secret[0], in: (0..<256).map { UInt8(truncatingIfNeeded: $0 &* 7) })
  let shown = [found]
  reveal(shown.span)
  return shown == [21]
}

@inline(never)
private func looksUp(_ secret: UInt8, in table: [UInt8]) -> UInt8 { table[Int(secret)] }
