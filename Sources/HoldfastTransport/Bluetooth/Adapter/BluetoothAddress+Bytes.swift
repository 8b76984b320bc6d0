extension BluetoothAddress {
  /// Takes six bytes in the order in which the radio and the kernel have them.
  init(leastSignificantFirst bytes: ArraySlice<UInt8>) {
    precondition(bytes.count == 6)
    self.init(value: bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) })
  }

  /// The six bytes in the order in which the radio and the kernel have them.
  var leastSignificantFirst: [UInt8] {
    stride(from: 0, to: 48, by: 8).map { UInt8(truncatingIfNeeded: value >> UInt64($0)) }
  }
}
