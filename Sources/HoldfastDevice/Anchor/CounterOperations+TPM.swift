import HoldfastCore

extension CounterOperations {
  /// The counters of a TPM 2.0.
  ///
  /// Source: TPM 2.0 Library, Part 3 §31: TPM2_NV_DefineSpace, NV_UndefineSpace, NV_Increment, NV_Read. All in password
  /// sessions, the owner's password being empty. A counter that is removed and defined again goes on above every one before
  /// (Part 1 §37.2.4.3), and only who knows the authorization value can read or raise it. That something is a counter need
  /// not be asked: nothing else can be incremented, and a device does nothing before it was.
  static let tpm = CounterOperations(
    define: { (place, authorization) throws(CounterFault) in
      try authorization.withBytes { (value: Span<UInt8>) throws(CounterFault) in
        var parameters = ByteBuffer<64>()
        do throws(EncodingFault) { try parameters.append(definitionOf: place, authorization: value) } catch {
          throw .malformed
        }
        let command = TPMCommand(code: .defineSpace, handles: [ownerHandle])
        try TPM.run(command, authorization: Span(), parameters: parameters.bytes, at: place.tpm, response: 0)
      }
    },
    undefine: { (place) throws(CounterFault) in
      let command = TPMCommand(code: .undefineSpace, handles: [ownerHandle, place.index])
      try TPM.run(command, authorization: Span(), parameters: Span(), at: place.tpm, response: 0)
    },
    increment: { (place, authorization) throws(CounterFault) in
      try authorization.withBytes { (value: Span<UInt8>) throws(CounterFault) in
        let command = TPMCommand(code: .increment, handles: [place.index, place.index])
        try TPM.run(command, authorization: value, parameters: Span(), at: place.tpm, response: 0)
      }
    },
    read: { (place, authorization) throws(CounterFault) in
      try authorization.withBytes { (value: Span<UInt8>) throws(CounterFault) -> UInt64 in
        let command = TPMCommand(code: .read, handles: [place.index, place.index])
        let byteCountAndOffset: InlineArray<4, UInt8> = [0, 8, 0, 0]
        let answer = try TPM.run(
          command, authorization: value, parameters: byteCountAndOffset.span, at: place.tpm, response: 10)
        guard answer[0] == 0, answer[1] == 8 else { throw .malformed }
        return answer[2...].reduce(0) { $0 << 8 | UInt64($1) }
      }
    })

  /// TPM_RH_OWNER.
  private static let ownerHandle: UInt32 = 0x4000_0001
}

extension ByteBuffer {
  /// TPM2B_AUTH and TPM2B_NV_PUBLIC of a counter of 8 bytes, for those who know `authorization` alone.
  ///
  /// Source: Part 2 §13.4 (TPMA_NV) and §13.5: TPM_NT_COUNTER, AUTHWRITE, AUTHREAD, NO_DA; the name's hash is SHA-256.
  fileprivate mutating func append(
    definitionOf place: CounterPlace, authorization: Span<UInt8>
  ) throws(EncodingFault) {
    try append(bigEndian: UInt16(authorization.count))
    try append(authorization)
    try append(bigEndian: 14 as UInt16)
    try append(bigEndian: place.index)
    try append(bigEndian: 0x000b as UInt16)
    try append(bigEndian: 0x0204_0014 as UInt32)
    try append(bigEndian: 0 as UInt16)
    try append(bigEndian: 8 as UInt16)
  }
}
