#if !HAS_PROOF_KEYS
import HoldfastMeasurement

extension ProofKeys {
  /// The default key, which everybody knows: this program was built without a key file.
  nonisolated static var app: ProofKeys { .default }
}
#endif
