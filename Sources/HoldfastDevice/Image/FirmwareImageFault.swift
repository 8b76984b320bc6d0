import HoldfastFirmware
import HoldfastStorage

/// Why the image of a device's flash could not be made or opened.
public enum FirmwareImageFault: Error, Equatable {
  /// The file is missing, open to others, in use, or not to be had for another reason.
  case file(FileError)
  /// It is shorter than the flash that a device uses.
  case tooShort
  /// It holds no identity that can be used.
  case provision(ProvisionFault)
  /// It holds an identity, but what the device must remember cannot be read.
  case store(StoreFault)
  /// Making: the policy names more commands than there is room for.
  case tooManyCommands
  /// Making: an issuer cannot be trusted.
  case ledger(LedgerFault)
  /// The random source, the clock or the cryptographic library failed.
  case failed
}
