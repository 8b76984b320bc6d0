import HoldfastCore

/// A vector's key as a secret: vectors are public, the functions that they test take secrets.
func secret<let count: Int>(_ bytes: FixedBytes<count>) -> Secret<count> {
  var secret = Secret<count>()
  secret.withMutableBytes { (output: inout MutableSpan<UInt8>) in
    for index in output.indices { output[index] = bytes[index] }
  }
  return secret
}

/// The bytes of a secret that a vector names too.
func publicBytes<let count: Int>(_ secret: borrowing Secret<count>) -> FixedBytes<count> {
  var bytes = FixedBytes<count>()
  secret.withBytes { for index in $0.indices { bytes[index] = $0[index] } }
  return bytes
}

/// The bytes of a span, copied.
func array(_ span: Span<UInt8>) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(span.count)
  for index in span.indices { bytes.append(span[index]) }
  return bytes
}
