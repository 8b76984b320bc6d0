import HoldfastCore
import HoldfastOpenSSL

import HoldfastAuthenticator

/// The credentials of `text`.
func read(
  _ text: String, _ format: CredentialFormat, _ parameters: borrowing ImportParameters = ImportParameters()
) throws -> [Credential] {
  try Credential.read(Array(text.utf8).span, format: format, parameters: parameters)
}

/// Why `text` is refused; nil when it is read.
func fault(
  _ text: String, _ format: CredentialFormat, _ parameters: borrowing ImportParameters = ImportParameters()
) -> ImportFault? {
  do {
    _ = try Credential.read(Array(text.utf8).span, format: format, parameters: parameters)
    return nil
  } catch {
    return error
  }
}

extension SecretBytes {
  /// The bytes, for comparing with what is expected.
  borrowing func array() -> [UInt8] { withBytes { [UInt8]($0) } }
}

extension Credential {
  var secretArray: [UInt8] { secret.array() }
}

extension [UInt8] {
  /// The same bytes as a secret.
  var secret: SecretBytes { SecretBytes(copying: span) }
}

extension String {
  /// The UTF-8 bytes as a secret.
  var secret: SecretBytes { Array(utf8).secret }
}

/// Numbers that are the same in each run. Source: Steele et al., SplitMix64.
struct RepeatableRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
    return mixed ^ mixed >> 31
  }
}
