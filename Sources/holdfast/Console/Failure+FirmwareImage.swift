import HoldfastDevice
import HoldfastFirmware
import HoldfastStorage

extension Failure {
  /// The image of a device's flash could not be opened.
  init(_ fault: FirmwareImageFault, image path: String) {
    switch fault {
    case .file(let error): self.init(image: error)
    case .tooShort:
      self.init(
        .malformed, "\(path) is too short for the image of a device's flash, which has \(FlashLayout.byteCount) bytes",
        hint: Self.whatImagesAre)
    case .provision(let fault): self.init(fault, image: path)
    case .store(.blank):
      self.init(
        .malformed, "\(path) is half provisioned: it holds an identity, and no memory", hint: Self.whenImageIsLost)
    case .store:
      self.init(
        .malformed, "\(path) is damaged: what its device must remember cannot be read", hint: Self.whenImageIsLost)
    case .tooManyCommands:
      self.init(
        .malformed, "the policy names more than \(FirmwarePolicy.maximumCommandCount) commands, the most in an image",
        hint: "leave out what the device does not need")
    case .ledger(let fault): self.init(fault)
    case .failed: self.init(.fault, "the random source, the clock or the cryptographic library failed")
    }
  }

  private init(_ fault: ProvisionFault, image path: String) {
    switch fault {
    case .blank: self.init(.malformed, "\(path) is blank: nobody has provisioned it", hint: Self.whatImagesAre)
    case .foreign:
      self.init(.malformed, "\(path) is not the image of a device's flash", hint: Self.whatImagesAre)
    case .newerVersion: self.init(.malformed, "\(path) was written by a later version", hint: "use that version")
    case .damaged:
      self.init(
        .malformed, "\(path) is damaged or half provisioned: its device has no identity", hint: Self.whenImageIsLost)
    case .tooLarge, .flash:
      self.init(.fault, "\(path): what the owner gives the device has no room in its flash")
    }
  }

  /// It could not be made.
  init(making fault: FirmwareImageFault, image path: String) {
    guard case .file(let error) = fault, error.kind != .exists else {
      self.init(fault, image: path)
      return
    }
    self.init(making: error)
  }

  /// Its file could not be read or written.
  init(image error: FileError) {
    switch error.kind {
    case .locked: self.init(error, hint: "stop the device that runs from it, or wait for the other command")
    case .notFound, .tooLarge: self.init(error, hint: Self.whatImagesAre)
    case .exists: self.init(error, hint: "take another name")
    case .isDirectory, .notDirectory, .notRegular, .symbolicLink: self.init(error, hint: "give the image's own file")
    case .noPermission, .readOnly, .tooOpen, .wrongOwner, .diskFull, .anotherKind, .other:
      self.init(error)
    }
  }

  private static let whatImagesAre = "holdfast device init --firmware makes one"
  private static let whenImageIsLost =
    "an older copy would forget what was used up: make a new one with holdfast device init --firmware"
}
