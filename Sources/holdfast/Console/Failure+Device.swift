import HoldfastCore
import HoldfastDevice
import HoldfastFirmware
import HoldfastFormats
import HoldfastStorage
import HoldfastTransport

extension Failure {
  /// Creates the failure for a device's folder that could not be created or opened.
  init(_ fault: DeviceFolderFault, folder: String) {
    switch fault {
    case .missing:
      self.init(
        .malformed, "there is no device in \(folder)", hint: "make one: holdfast device init --dir \(folder.shellWord)")
    case .notFolder:
      self.init(
        .malformed, "\(folder) is not a folder, or a symbolic link to one",
        hint: "give the folder itself, or another name")
    case .tooOpen:
      self.init(.noPermission, "others may enter \(folder)", hint: "chmod 700 \(folder.shellWord)")
    case .wrongOwner:
      self.init(.noPermission, "\(folder) belongs to another user", hint: "run as the user whom it belongs to")
    case .alreadyMade:
      self.init(
        .malformed, "there is a device in \(folder) already, and nothing is overwritten", hint: "take another folder")
    case .incomplete:
      self.init(
        .malformed, "\(folder) holds no whole device: a reset was interrupted, or files are missing",
        hint: "make a new device of it: holdfast device reset --yes --dir \(folder.shellWord); where that cannot be, "
          + "remove it all and run device init")
    case .halfMade:
      self.init(
        .malformed, "the making of the device in \(folder) was interrupted",
        hint: "make it again: holdfast device init --dir \(folder.shellWord)")
    case .inUse:
      self.init(.unavailable, "another process uses the device in \(folder)", hint: "stop that one first")
    case .noPermission:
      self.init(.noPermission, "no permission for \(folder)", hint: "run as the user whom it belongs to")
    case .diskFull:
      self.init(.fault, "the disk is full", hint: "free some space and run it again")
    case .file(let file, let fault):
      self.init(fault, path: file.path(in: folder))
    case .counter(let fault): self.init(fault)
    case .badTPMPath:
      self.init(
        .usage, "the path of a TPM is absolute, and has at most 107 bytes",
        hint: "/dev/tpmrm0 is the usual one; swtpm's is the path of its socket")
    case .folder(let error): self.init(error, hint: "put it right, or take another folder")
    case .failed:
      self.init(.fault, "the random source, the clock or the cryptographic library failed")
    }
  }

  private init(_ fault: DeviceFileFault, path: String) {
    switch fault {
    case .missing: self.init(.malformed, "\(path) is missing", hint: "restore it from a backup: it cannot be made anew")
    case .tooOpen: self.init(.noPermission, "others may read or write \(path)", hint: "chmod 600 \(path.shellWord)")
    case .wrongOwner: self.init(.noPermission, "\(path) belongs to another user", hint: Self.runAsOwner)
    case .notRegular:
      self.init(.malformed, "\(path) is not a regular file", hint: "put the file itself there: links are not followed")
    case .corrupt:
      self.init(.malformed, "\(path) is damaged", hint: "restore it from a backup, or make a new device")
    case .otherDevice:
      self.init(.malformed, "\(path) is of another device", hint: "put this device's own file back")
    case .newerVersion: self.init(.malformed, "\(path) was written by a later version", hint: "use that version")
    case .olderVersion:
      self.init(
        .malformed, "\(path) was written by an earlier version, which is not read any more",
        hint: "make a new device in another folder: holdfast device init")
    case .rolledBack:
      self.init(
        .malformed, "\(path) is not the newest one: the TPM's counter has gone on since it was written",
        hint: "put the newest copy back; where it is lost, holdfast device reset makes a new device of it")
    case .noPermission: self.init(.noPermission, "no permission for \(path)", hint: Self.runAsOwner)
    case .diskFull: self.init(.fault, "the disk is full", hint: "free some space and run it again")
    case .readOnly: self.init(.fault, "\(path) or its file system is read-only", hint: Self.whenReadOnly)
    case .busy: self.init(.unavailable, "\(path) is held by another process", hint: "try again")
    case .failed: self.init(.fault, "\(path): the system failed")
    }
  }

  /// Creates the failure for the counter that anchors a device.
  private init(_ fault: CounterFault) {
    switch fault {
    case .notThere:
      self.init(
        .unavailable, "the TPM that anchors the device is not there",
        hint: "device.json names its path: is the TPM's driver loaded, or swtpm running?")
    case .noPermission:
      self.init(
        .noPermission, "no permission for the TPM that anchors the device",
        hint: "who may use it is often the group tss")
    case .silent: self.init(.unavailable, "the TPM that anchors the device does not answer", hint: "try again")
    case .malformed:
      self.init(
        .unavailable, "what answers in place of the TPM is none", hint: "give swtpm's --server socket, not its --ctrl")
    case .notDefined:
      self.init(
        .malformed, "the TPM has no counter of this device: it was removed, or this is another TPM",
        hint: Self.whenAnchorIsLost)
    case .notOurs:
      self.init(
        .malformed, "in the TPM something else stands in place of this device's counter", hint: Self.whenAnchorIsLost)
    case .taken: self.init(.fault, "the TPM has no free index where one was tried", hint: "try again")
    case .full:
      self.init(.fault, "the TPM has no room for another counter", hint: "remove one that is not used any more")
    case .ownerOnly:
      self.init(
        .noPermission, "the owner of the TPM has set a password, so no counter can be made or removed",
        hint: "make it without one (tpm2_changeauth), and set it again afterwards")
    case .refused(let code):
      self.init(.unavailable, "the TPM refused, with response code 0x\(String(code, radix: 16))")
    }
  }

  private static let whenAnchorIsLost =
    "the device's own TPM must be there; where it is lost, holdfast device reset makes a new device of it"

  private static let runAsOwner = "run as the user whom it belongs to"

  /// Creates the failure for a device's folder that could not be created.
  init(making fault: DeviceFolderFault, folder: String) {
    guard fault == .missing else {
      self.init(fault, folder: folder)
      return
    }
    self.init(making: FileError(.notFound, at: folder))
  }

  /// Creates the failure for a ledger that could not be used.
  init(_ fault: LedgerFault) {
    switch fault {
    case .failed:
      self.init(.fault, "the ledger could not be read or written", hint: "is the disk full?")
    case .damaged:
      self.init(
        .malformed, "what the device must remember is damaged: it holds what the device never wrote",
        hint: "an older copy would forget what was used up; where the newest one is lost, make a new device")
    case .busy: self.init(.unavailable, "the ledger is held by another process", hint: "try again")
    case .rolledBack:
      self.init(
        .malformed, "the ledger is not the newest one: the TPM's counter has gone on since it was written",
        hint: "put the newest copy back; where it is lost, holdfast device reset makes a new device of it")
    case .counter(let fault): self.init(fault)
    case .tooManyIssuers:
      self.init(.denied, "as many issuers are trusted as there may be", hint: "remove one: --remove KID")
    case .keyIDTaken: self.init(.denied, "another issuer has the same key id")
    case .unwritable(let error): self.init(image: error)
    case .floorOnlyRises:
      self.init(
        .denied, "in an image floors only rise", hint: "what the device knew of tokens below them is no longer kept")
    case .floorOutOfRange: self.init(.usage, "a floor is at most \(maximumInteger)")
    case .userExists:
      self.init(.denied, "there is a user of that name already", hint: "--replace takes the secrets away from that one")
    case .unknownUser:
      self.init(.denied, "there is no user of that name", hint: "to see them: holdfast device user list --dir DIR")
    case .tooManyUsers: self.init(.denied, "there are as many users as there may be", hint: "remove one")
    case .tooManyCodes:
      self.init(.denied, "as many codes wait to be used as there may be", hint: "wait ten minutes")
    case .unsupportedMethod:
      self.init(
        .usage, "the device cannot verify codes that are made this way",
        hint: "a suite for seals has QH64, 4 to 10 digits, C or T but not both, and neither P nor S")
    case .timeStepTooShort:
      let shortest = FirmwareImage.shortestTimeStepSeconds
      self.init(
        .usage, "a microcontroller would take too long to look for codes that change so often",
        hint: "--period \(shortest) or more; in a suite T\(shortest)S or more")
    case .unknownIssuer:
      self.init(
        .denied, "no issuer of that key id is trusted, and none was",
        hint: "holdfast device show --dir DIR lists the issuers")
    }
  }

  /// Creates the failure for a server that could not start or lost an endpoint.
  init(_ fault: ServerFault, folder: String = "") {
    switch fault {
    case .folder(let fault): self.init(fault, folder: folder)
    case .endpoint(let endpoint, let error): self.init(listening: error, endpoint: endpoint)
    case .ledger(let fault): self.init(fault)
    case .noDescriptors:
      self.init(.fault, "a server may open too few files", hint: "ulimit -n 320, or LimitNOFILE=320 for a service")
    }
  }

  private init(listening error: TransportError, endpoint: Endpoint) {
    switch error {
    case .notFound:
      self.init(.unavailable, "\(endpoint): there is no such folder or device", hint: "make the folder first")
    case .addressInUse: self.init(.unavailable, "another process listens at \(endpoint) already")
    case .pathOccupied:
      self.init(.malformed, "there is another file at \(endpoint), and it is left alone", hint: "take another path")
    default: self.init(error, endpoint: endpoint)
    }
  }

  /// Creates the failure for a key that could not be accepted.
  init(_ fault: KeyFault, path: String) {
    switch fault {
    case .malformed: self.init(.malformed, "\(path) is not strict JSON, or is too long", hint: Self.whereKeysAre)
    case .unexpected: self.init(.malformed, "\(path) is not what it should be", hint: Self.whereKeysAre)
    case .privateKey:
      self.init(
        .malformed, "\(path) holds a private key, which nobody should hand out", hint: "give the public key alone")
    case .notOnCurve: self.init(.malformed, "\(path): the key is not a point on P-256", hint: Self.whereKeysAre)
    }
  }

  private static let whereKeysAre =
    "holdfast service show --json prints an issuer's key, service mac-key writes one, device show --json prints a descriptor"

  /// Creates the failure for the image of a device's flash that could not be opened.
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

  /// Creates the failure for the image of a device's flash that could not be created.
  init(making fault: FirmwareImageFault, image path: String) {
    guard case .file(let error) = fault, error.kind != .exists else {
      self.init(fault, image: path)
      return
    }
    self.init(making: error)
  }

  /// Creates the failure for the file of a flash image that could not be read or written.
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
