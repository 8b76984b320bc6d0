import HoldfastCore

/// A command of a TPM 2.0 with one password session.
///
/// Written here, not linked: the prover hashes every byte of this executable for each proof, and tpm2-tss would be hundreds
/// of kilobytes for four commands. Source: TPM 2.0 Library, Part 1 §18 (structure), §19.4 (password authorizations).
struct TPMCommand {
  /// Source: Part 2 §6.5.2.
  enum Code: UInt32 {
    case undefineSpace = 0x122
    case defineSpace = 0x12a
    case increment = 0x134
    case read = 0x14e

    /// Whether the TPM's owner authorizes it.
    var isOwners: Bool { self == .undefineSpace || self == .defineSpace }
  }

  let code: Code
  /// The first one is authorized.
  let handles: [UInt32]

  /// Appends tag, size, code, handles, the session with `authorization`, and `parameters`.
  func encode(
    authorization: Span<UInt8>, parameters: Span<UInt8>, into bytes: inout ByteBuffer<160>
  ) throws(EncodingFault) {
    let sessionByteCount = 9 + authorization.count
    try bytes.append(bigEndian: 0x8002 as UInt16)
    try bytes.append(bigEndian: UInt32(14 + 4 * handles.count + sessionByteCount + parameters.count))
    try bytes.append(bigEndian: code.rawValue)
    for handle in handles { try bytes.append(bigEndian: handle) }
    try bytes.append(bigEndian: UInt32(sessionByteCount))
    // TPM_RS_PW, no nonce, continueSession.
    try bytes.append(bigEndian: 0x4000_0009 as UInt32)
    try bytes.append(bigEndian: 0 as UInt16)
    try bytes.append(1)
    try bytes.append(bigEndian: UInt16(authorization.count))
    try bytes.append(authorization)
    try bytes.append(parameters)
  }
}
