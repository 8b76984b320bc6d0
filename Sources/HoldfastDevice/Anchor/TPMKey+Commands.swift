import HoldfastCore
import HoldfastLinux

extension TPMKeyOperations {
  /// The operations on the keys of a TPM 2.0.
  ///
  /// The key is a primary object of the owner's hierarchy with random bytes in its template, made persistent: FIXEDTPM,
  /// FIXEDPARENT, SENSITIVEDATAORIGIN, USERWITHAUTH, NODA, DECRYPT, for ECDH only. The TPM makes the private half and gives it
  /// to nobody. Like the counter's, all sessions are password sessions, and the owner's password is empty.
  ///
  /// Source: TPM 2.0 Library, Part 3 §24.1 (TPM2_CreatePrimary), §28.5 (TPM2_EvictControl), §28.4 (TPM2_FlushContext), §14.5
  /// (TPM2_ECDH_ZGen).
  package static let tpm = TPMKeyOperations(
    make: { (place, authorization, unique) throws(CounterFault) in
      var parameters = ByteBuffer<128>()
      do throws(EncodingFault) {
        try authorization.withBytes { (value: Span<UInt8>) throws(EncodingFault) in
          try parameters.append(templateWith: value, unique)
        }
      } catch { throw .malformed }
      let deadline = Deadline(afterMilliseconds: TPM.timeoutMilliseconds)
      // A transient object belongs to one connection of the kernel's resource manager.
      let connection = try TPMConnection(path: place.tpm, deadline: deadline)
      var answer = ByteBuffer<1024>()
      let create = TPMCommand(code: .createPrimary, handles: [TPM.ownerHandle])
      let range = try TPM.send(
        create, authorization: Span(), parameters: parameters.bytes, over: connection, until: deadline,
        handleCount: 1, into: &answer)
      let object = answer.bytes.bigEndian(at: TPMResponse.headByteCount)
      let point = Result { () throws(CounterFault) in
        let point = try answer.bytes.extracting(range).createdPoint()
        try TPM.evict(object, to: place.handle, over: connection, until: deadline)
        return point
      }
      try? TPM.flush(object, over: connection, until: deadline)
      return try point.get()
    },
    remove: { (place) throws(CounterFault) in
      let deadline = Deadline(afterMilliseconds: TPM.timeoutMilliseconds)
      let connection = try TPMConnection(path: place.tpm, deadline: deadline)
      try TPM.evict(place.handle, to: place.handle, over: connection, until: deadline)
    },
    agree: { (place, authorization, peer, shared) throws(CounterFault) in
      var parameters = ByteBuffer<128>()
      do throws(EncodingFault) { try parameters.append(point: peer) } catch { throw .malformed }
      let deadline = Deadline(afterMilliseconds: TPM.timeoutMilliseconds)
      let connection = try TPMConnection(path: place.tpm, deadline: deadline)
      var answer = ByteBuffer<1024>()
      let command = TPMCommand(code: .agree, handles: [place.handle])
      let range = try authorization.withBytes { (value: Span<UInt8>) throws(CounterFault) in
        try TPM.send(
          command, authorization: value, parameters: parameters.bytes, over: connection, until: deadline, into: &answer)
      }
      try answer.bytes.extracting(range).readShared(into: &shared)
    })
}

extension TPM {
  fileprivate static func send<let capacity: Int>(
    _ command: TPMCommand, authorization: Span<UInt8>, parameters: Span<UInt8>,
    over connection: borrowing TPMConnection, until deadline: Deadline, handleCount: Int = 0,
    into answer: inout ByteBuffer<capacity>
  ) throws(CounterFault) -> Range<Int> {
    var bytes = ByteBuffer<160>()
    do throws(EncodingFault) {
      try command.encode(authorization: authorization, parameters: parameters, into: &bytes)
    } catch { throw .malformed }
    return try perform(
      command.code, bytes.bytes, over: connection, until: deadline, handleCount: handleCount, into: &answer)
  }

  /// Makes an object persistent, or a persistent one (`object` equals `handle`) transient, which removes it.
  fileprivate static func evict(
    _ object: UInt32, to handle: UInt32, over connection: borrowing TPMConnection, until deadline: Deadline
  ) throws(CounterFault) {
    var parameters = ByteBuffer<8>()
    var answer = ByteBuffer<64>()
    do throws(EncodingFault) { try parameters.append(bigEndian: handle) } catch { throw .malformed }
    let command = TPMCommand(code: .evictControl, handles: [ownerHandle, object])
    let range = try send(
      command, authorization: Span(), parameters: parameters.bytes, over: connection, until: deadline, into: &answer)
    guard range.isEmpty else { throw .malformed }
  }

  /// Frees the place of a transient object. The command has no session.
  fileprivate static func flush(
    _ object: UInt32, over connection: borrowing TPMConnection, until deadline: Deadline
  ) throws(CounterFault) {
    var bytes = ByteBuffer<16>()
    var answer = ByteBuffer<64>()
    do throws(EncodingFault) {
      try bytes.append(bigEndian: 0x8001 as UInt16)
      try bytes.append(bigEndian: 14 as UInt32)
      try bytes.append(bigEndian: TPMCommand.Code.flushContext.rawValue)
      try bytes.append(bigEndian: object)
    } catch { throw .malformed }
    try connection.exchange(bytes.bytes, into: &answer)
  }
}

extension ByteBuffer {
  /// Appends the parameters of TPM2_CreatePrimary: TPM2B_SENSITIVE_CREATE with the authorization value, TPM2B_PUBLIC, no
  /// outsideInfo, no PCRs.
  ///
  /// Source: Part 2 §11.1.15, §12.2.4 (TPMT_PUBLIC), §12.2.3.6 (TPMS_ECC_PARMS), §8.3 (TPMA_OBJECT).
  fileprivate mutating func append(
    templateWith authorization: Span<UInt8>, _ unique: FixedBytes<32>
  ) throws(EncodingFault) {
    try append(bigEndian: UInt16(4 + authorization.count))
    try append(bigEndian: UInt16(authorization.count))
    try append(authorization)
    try append(bigEndian: 0 as UInt16)
    try append(bigEndian: UInt16(22 + unique.bytes.count + 2))
    try append(bigEndian: 0x0023 as UInt16)  // TPM_ALG_ECC
    try append(bigEndian: 0x000b as UInt16)  // the name's hash: SHA-256
    try append(bigEndian: 0x0002_0472 as UInt32)
    try append(bigEndian: 0 as UInt16)  // no policy
    try append(bigEndian: 0x0010 as UInt16)  // no symmetric algorithm
    try append(bigEndian: 0x0019 as UInt16)  // TPM_ALG_ECDH with SHA-256, which TPM2_ECDH_ZGen does not use
    try append(bigEndian: 0x000b as UInt16)
    try append(bigEndian: 0x0003 as UInt16)  // TPM_ECC_NIST_P256
    try append(bigEndian: 0x0010 as UInt16)  // no key derivation
    try append(bigEndian: UInt16(unique.bytes.count))
    try append(unique.bytes)
    try append(bigEndian: 0 as UInt16)
    try append(bigEndian: 0 as UInt16)
    try append(bigEndian: 0 as UInt32)
  }

  /// Appends TPM2B_ECC_POINT.
  fileprivate mutating func append(point: P256Point) throws(EncodingFault) {
    try append(bigEndian: 68 as UInt16)
    for start in [1, 33] {
      try append(bigEndian: 32 as UInt16)
      try append(point.bytes.extracting(start..<start + 32))
    }
  }
}

extension Span where Element == UInt8 {
  /// Reads the public point in the response to TPM2_CreatePrimary, which begins with TPM2B_PUBLIC.
  package func createdPoint() throws(CounterFault) -> P256Point {
    // The template comes back, except for `unique`, which is now the point.
    let start = 2 + 22 - 2
    guard count >= start + 2, Int(UInt16(self[0]) << 8 | UInt16(self[1])) <= count - 2, self[2] == 0, self[3] == 0x23
    else { throw .malformed }
    var point = P256Point()
    point[0] = 4
    var offset = start
    for place in [1, 33] {
      let range = try coordinate(at: offset)
      for index in range { point[place + 32 - range.count + index - range.lowerBound] = self[index] }
      offset = range.upperBound
    }
    return point
  }

  /// Reads the x coordinate of TPM2B_ECC_POINT, the response to TPM2_ECDH_ZGen.
  package func readShared(into shared: inout Secret<32>) throws(CounterFault) {
    guard count >= 2, Int(UInt16(self[0]) << 8 | UInt16(self[1])) == count - 2 else { throw .malformed }
    let x = try coordinate(at: 2)
    guard try coordinate(at: x.upperBound).upperBound == count else { throw .malformed }
    shared.withMutableBytes { (bytes: inout MutableSpan<UInt8>) in
      for index in 0..<32 { bytes[index] = 0 }
      for index in x { bytes[32 - x.count + index - x.lowerBound] = self[index] }
    }
  }

  /// Returns the range of a coordinate (TPM2B_ECC_PARAMETER). A TPM may leave out leading zeros.
  private func coordinate(at offset: Int) throws(CounterFault) -> Range<Int> {
    guard count >= offset + 2 else { throw .malformed }
    let length = Int(UInt16(self[offset]) << 8 | UInt16(self[offset + 1]))
    guard (1...32).contains(length), count >= offset + 2 + length else { throw .malformed }
    return offset + 2..<offset + 2 + length
  }
}
