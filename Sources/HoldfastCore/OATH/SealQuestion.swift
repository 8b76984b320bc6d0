/// What a seal is made over: `SHA-256("holdfast/1 seal" ‖ 0x00 ‖ CBOR [command, [parameters]])` as 64 hexadecimal digits.
///
/// Source: docs/protocol.md, Codes; an OCRA question (RFC 6287 §5.1).
///
/// - Parameters:
///   - parameterCount: at most 8; none gives an empty array.
///   - parameter: the one at an index below `parameterCount`.
/// - Returns: ASCII, lower case; a suite reads them as a number, so that their case does not matter.
public func sealQuestion<Crypto: Cryptography & ~Copyable>(
  command: BoundedText<32>, parameterCount: Int, parameter: (Int) -> BoundedText<64>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> FixedBytes<64> {
  let digest = try commandDigest(
    command: command, parameterCount: parameterCount, parameter: parameter, using: &cryptography)
  var question = ByteBuffer<64>()
  try? question.appendHexadecimal(digest.bytes)
  return FixedBytes<64>(question.bytes)!
}

/// Identifies a command and its parameters: `SHA-256("holdfast/1 seal" ‖ 0x00 ‖ CBOR [command, [parameters]])`, 32 bytes.
///
/// Seals cover it, and a device tells by it whether a repeated request is the same one. The parameters are as for
/// ``sealQuestion(command:parameterCount:parameter:using:)``.
@inline(never)
public func commandDigest<Crypto: Cryptography & ~Copyable>(
  command: BoundedText<32>, parameterCount: Int, parameter: (Int) -> BoundedText<64>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> Digest {
  var hash = try cryptography.sha256()
  hash.append(domain: "holdfast/1 seal")
  hash.appendCBOR(array: 2)
  hash.appendCBOR(text: command.bytes)
  hash.appendCBOR(array: parameterCount)
  for index in 0..<parameterCount {
    let text = parameter(index)
    hash.appendCBOR(text: text.bytes)
  }
  return try hash.finish()
}
