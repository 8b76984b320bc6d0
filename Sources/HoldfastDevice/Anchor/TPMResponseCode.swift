/// Why a TPM did not do what it was asked.
///
/// Source: TPM 2.0 Library, Part 2 §6.6. Codes of format one (bit 7) say in other bits which handle, session or parameter
/// is meant; that is left out here.
struct TPMResponseCode: Equatable {
  let rawValue: UInt32

  /// Whether it did nothing and wants the same command again: TPM_RC_YIELDED, TESTING, NV_RATE, RETRY.
  var wantsRetry: Bool {
    [0x908, 0x90a, 0x920, 0x922].contains(rawValue)
  }

  /// What it means for the counter, where `isOwners` says whether the TPM's owner was to authorize the command.
  func fault(isOwners: Bool) -> CounterFault {
    let isFormatOne = rawValue & 0x80 != 0
    switch isFormatOne ? rawValue & 0xbf : rawValue {
    // TPM_RC_HANDLE.
    case 0x8b: return .notDefined
    // TPM_RC_NV_DEFINED, NV_SPACE.
    case 0x14c: return .taken
    case 0x14b: return .full
    // TPM_RC_AUTH_FAIL, BAD_AUTH.
    case 0x8e, 0xa2: return isOwners ? .ownerOnly : .notOurs
    // TPM_RC_ATTRIBUTES, AUTH_UNAVAILABLE, NV_RANGE, NV_AUTHORIZATION, NV_UNINITIALIZED.
    case 0x82, 0x12f, 0x146, 0x149, 0x14a: return .notOurs
    default: return .refused(code: rawValue)
    }
  }
}
