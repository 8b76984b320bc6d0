import HoldfastCore
import HoldfastDevice
import HoldfastFirmware
import HoldfastFormats
import HoldfastLinux
import HoldfastTransport

extension Failure {
  /// Creates the failure for a device's folder that could not be created or opened.
  package init(_ fault: DeviceFolderFault, folder: String) {
    switch fault {
    case .missing: self.init(noDeviceIn: folder)
    case .folder(let error) where error == FileError(.notFound, at: folder): self.init(noDeviceIn: folder)
    case .folder(let error) where error == FileError(.locked, at: folder):
      self.init(.unavailable, "another process uses the device in \(folder)", hint: "stop that process first")
    case .folder(let error): self.init(error, hint: "correct that, or use another folder")
    case .alreadyMade:
      self.init(
        .malformed, "there is already a device in \(folder); nothing was overwritten", hint: "use another folder")
    case .incomplete:
      self.init(
        .malformed, "\(folder) contains no complete device: a reset was interrupted, or files are missing",
        hint: "turn it into a new device: holdfast device reset --yes --dir \(folder.shellWord); if that fails, "
          + "remove the folder and run device init")
    case .halfMade:
      self.init(
        .malformed, "the creation of the device in \(folder) was interrupted",
        hint: "create it again: holdfast device init --dir \(folder.shellWord)")
    case .file(let file, let fault):
      self.init(fault, path: file.path(in: folder))
    case .counter(let fault): self.init(fault)
    case .key(let fault): self.init(keyInTPM: fault)
    case .badTPMPath:
      self.init(
        .usage, "the path of a TPM must be absolute and have at most 107 bytes",
        hint: "the usual path is /dev/tpmrm0; for swtpm, give the path of its socket")
    case .failed:
      self.init(.fault, "the random source, the clock or the cryptographic library failed")
    }
  }

  private init(_ fault: DeviceFileFault, path: String) {
    switch fault {
    case .file(let error):
      switch error.kind {
      case .symbolicLink, .notRegular, .isDirectory:
        self.init(error, hint: "put the file itself there: a link is not followed")
      default: self.init(error, hint: Self.restoreDevice)
      }
    case .database(let error): self.init(error, path: path, restore: Self.restoreDevice)
    case .corrupt:
      self.init(.malformed, "\(path) is damaged", hint: Self.restoreDevice)
    case .otherDevice:
      self.init(.malformed, "\(path) belongs to another device", hint: "restore this device's own file")
    case .newerVersion: self.init(.malformed, "\(path) was written by a later version", hint: "use that version")
    case .olderVersion:
      self.init(
        .malformed, "\(path) was written by an earlier version, whose format is no longer supported",
        hint: "create a new device in another folder: holdfast device init")
    case .rolledBack:
      self.init(
        .malformed, "\(path) is not the newest copy: the TPM's counter has increased since it was written",
        hint: "restore the newest copy; if it is lost, holdfast device reset turns the folder into a new device")
    }
  }

  /// Creates the failure for the counter that anchors a device.
  private init(_ fault: CounterFault) {
    switch fault {
    case .notThere:
      self.init(
        .unavailable, "the TPM that anchors the device cannot be found",
        hint: "device.json names its path: is the TPM's driver loaded, or swtpm running?")
    case .noPermission:
      self.init(
        .noPermission, "no permission for the TPM that anchors the device",
        hint: "run as a member of the TPM's group, which is often tss")
    case .silent: self.init(.unavailable, "the TPM that anchors the device does not answer", hint: "try again")
    case .malformed:
      self.init(
        .unavailable, "a TPM was expected, but something else answers",
        hint: "give swtpm's --server socket, not its --ctrl socket")
    case .notDefined:
      self.init(
        .malformed, "the TPM has no counter for this device: it was removed, or this is another TPM",
        hint: Self.whenAnchorIsLost)
    case .notOurs:
      self.init(
        .malformed, "the TPM holds something else in place of this device's counter", hint: Self.whenAnchorIsLost)
    case .taken: self.init(.fault, "the TPM index that was tried is not free", hint: "try again")
    case .full:
      self.init(.fault, "the TPM has no room for another counter", hint: "remove one that is no longer used")
    case .ownerOnly:
      self.init(
        .noPermission, "the owner of the TPM has set a password, so no counter can be made or removed",
        hint: "remove the password (tpm2_changeauth), run this again, and then set the password again")
    case .refused(let code):
      self.init(.unavailable, "the TPM refused, with response code 0x\(String(code, radix: 16))")
    }
  }

  /// Creates the failure for the key that a TPM holds for a device.
  private init(keyInTPM fault: CounterFault) {
    switch fault {
    case .notThere:
      self.init(
        .unavailable, "the TPM for the device's key cannot be found",
        hint: "is the TPM's driver loaded, or swtpm running?")
    case .noPermission:
      self.init(
        .noPermission, "no permission for the TPM for the device's key",
        hint: "run as a member of the TPM's group, which is often tss")
    case .silent: self.init(.unavailable, "the TPM for the device's key does not answer", hint: "try again")
    case .notDefined:
      self.init(
        .malformed,
        "this TPM does not have the device's key: the folder was copied from another machine, or the key was removed",
        hint: Self.whenAnchorIsLost)
    case .notOurs:
      self.init(.malformed, "the TPM holds another key in place of the device's", hint: Self.whenAnchorIsLost)
    case .full:
      self.init(.fault, "the TPM has no room for another key", hint: "remove one that is no longer used")
    case .ownerOnly:
      self.init(
        .noPermission, "the owner of the TPM has set a password, so no key can be made or removed",
        hint: "remove the password (tpm2_changeauth), run this again, and then set the password again")
    case .malformed, .taken, .refused: self.init(fault)
    }
  }

  private static let whenAnchorIsLost =
    "the device needs its own TPM; if that is lost, holdfast device reset turns the folder into a new device"

  private static let restoreDevice = "restore it from a backup, or create a new device"

  /// Creates the failure for a device that is not reset, because nobody can tell where its key was.
  package init(damagedKeyAtResetOf folder: String) {
    let path = DeviceFile.key.path(in: folder)
    self.init(
      .malformed, "\(path) is damaged; nothing changed, because it may name a key in a TPM",
      hint: "restore it; or remove it, and the new device gets a key in a file")
  }

  private init(noDeviceIn folder: String) {
    self.init(
      .malformed, "there is no device in \(folder)", hint: "create one: holdfast device init --dir \(folder.shellWord)")
  }

  /// Creates the failure for a device's folder that could not be created. `tpm` is the path of the TPM that it needs, if any.
  package init(making fault: DeviceFolderFault, folder: String, tpm: String? = nil) {
    if let tpm, fault == .counter(.notThere) || fault == .key(.notThere) {
      self.init(.unavailable, "there is no TPM at \(tpm)", hint: "is the TPM's driver loaded, or swtpm running?")
      return
    }
    guard case .folder(let error) = fault, error.kind == .notFound else {
      self.init(fault, folder: folder)
      return
    }
    self.init(making: error)
  }

  /// Creates the failure for a ledger that could not be used.
  package init(_ fault: LedgerFault) {
    switch fault {
    case .failed:
      self.init(.fault, "the ledger could not be read or written", hint: "is the disk full?")
    case .readOnly:
      self.init(.fault, "the ledger or its file system is read-only", hint: Self.whenReadOnly)
    case .damaged:
      self.init(
        .malformed, "the device's memory is damaged: it holds data that the device never wrote",
        hint:
          "restore the newest copy, as an older one would forget which tokens and codes were used; if it is lost, create a new device"
      )
    case .busy: self.init(.unavailable, "the ledger is in use by another process", hint: "try again")
    case .rolledBack:
      self.init(
        .malformed, "the ledger is not the newest copy: the TPM's counter has increased since it was written",
        hint: "restore the newest copy; if it is lost, holdfast device reset turns the folder into a new device")
    case .counter(let fault): self.init(fault)
    case .tooManyIssuers:
      self.init(.denied, "the device already trusts the maximum number of issuers", hint: "remove one: --remove KID")
    case .emptyPeriod: self.init(.usage, "the trust would end before it begins: --until must be later than --from")
    case .keyIDTaken: self.init(.denied, "another issuer has the same key id")
    case .unwritable(let error): self.init(image: error)
    case .floorOnlyRises:
      self.init(
        .denied, "in an image, floors can only rise", hint: "the device no longer has its records of tokens below them")
    case .floorOutOfRange: self.init(.usage, "a floor is at most \(maximumInteger)")
    case .userExists:
      self.init(.denied, "there is already a user with that name", hint: "--replace discards that user's secrets")
    case .unknownUser:
      self.init(
        .denied, "there is no user with that name", hint: "to list the users: holdfast device user list --dir DIR")
    case .tooManyAuthenticators:
      self.init(.denied, "the user already has the maximum number of authenticators", hint: "remove NAME#2 or NAME#3")
    case .badUserName:
      self.init(
        .usage, "a new user's name has no #, and with spare authenticators at most 30 bytes",
        hint: "--spare adds a spare authenticator of a user")
    case .notOnBoards:
      self.init(.denied, "a board keeps neither spare authenticators nor demands of its owner")
    case .tooManyUsers: self.init(.denied, "the device already has the maximum number of users", hint: "remove one")
    case .tooManyCodes:
      self.init(.denied, "the device already has the maximum number of open codes", hint: "wait ten minutes")
    case .unsupportedMethod:
      self.init(
        .usage, "the device cannot verify codes that are generated this way",
        hint:
          "a suite for seals has QH64, 4 to 10 digits, C or T but not both, and neither P nor S; one for passwords, which boards do not have, has QH or QA of at least 16, or QN of at least 8"
      )
    case .timeStepTooShort:
      let shortest = FirmwareImage.shortestTimeStepSeconds
      self.init(
        .usage, "a microcontroller would take too long to search for codes that change this often",
        hint: "use --period \(shortest) or more; in a suite, use T\(shortest)S or more")
    case .unknownIssuer:
      self.init(
        .denied, "no issuer with that key id is trusted or was trusted before",
        hint: "holdfast device show --dir DIR lists the issuers")
    }
  }

  /// Creates the failure for a server that could not start or lost an endpoint.
  package init(_ fault: ServerFault, folder: String = "") {
    switch fault {
    case .endpoint(let endpoint, let error): self.init(listening: error, endpoint: endpoint)
    case .listener: self.init(.fault, "no more provers can connect")
    case .ledger(let fault): self.init(fault)
    case .alreadyServed: self.init(.fault, "the device is being served already")
    case .noDescriptors:
      self.init(
        .fault, "the limit on open files is too low for a server",
        hint: "raise it with ulimit -n 320, or LimitNOFILE=320 for a service")
    }
  }

  private init(listening error: TransportError, endpoint: Endpoint) {
    switch error {
    case .notFound:
      self.init(.unavailable, "\(endpoint): there is no such folder or device file", hint: "create the folder first")
    case .addressInUse: self.init(.unavailable, "another process is already listening at \(endpoint)")
    case .pathOccupied:
      self.init(.malformed, "there is another file at \(endpoint), which was left unchanged", hint: "use another path")
    default: self.init(error, endpoint: endpoint)
    }
  }

  /// Creates the failure for a key that could not be accepted.
  package init(_ fault: KeyFault, path: String) {
    switch fault {
    case .malformed: self.init(.malformed, "\(path) is not strict JSON, or is too long", hint: Self.whereKeysAre)
    case .unexpected:
      self.init(.malformed, "\(path) is not a key or descriptor of the kind that is needed", hint: Self.whereKeysAre)
    case .privateKey:
      self.init(
        .malformed, "\(path) contains a private key, which must not be handed out", hint: "give only the public key")
    case .notOnCurve: self.init(.malformed, "\(path): the key is not a point on P-256", hint: Self.whereKeysAre)
    }
  }

  private static let whereKeysAre =
    "holdfast service show --json prints an issuer's key, service mac-key writes a MAC key, device show --json prints a descriptor"

  /// Creates the failure for the image of a device's flash that could not be opened.
  package init(_ fault: FirmwareImageFault, image path: String) {
    switch fault {
    case .file(let error): self.init(image: error)
    case .tooShort:
      self.init(
        .malformed, "\(path) is too short for the image of a device's flash, which has \(FlashLayout.byteCount) bytes",
        hint: Self.whatImagesAre)
    case .provision(let fault): self.init(fault, image: path)
    case .store(.blank):
      self.init(
        .malformed, "\(path) is only partly provisioned: it contains an identity but no memory",
        hint: Self.whenImageIsLost)
    case .store:
      self.init(
        .malformed, "\(path) is damaged: the memory of its device cannot be read", hint: Self.whenImageIsLost)
    case .unsupportedRules:
      self.init(
        .malformed, "the policy has rules on parameters or circumstances, which a microcontroller does not apply",
        hint: "leave out parameters and step_up, and demand the factors always")
    case .tooManyCommands:
      self.init(
        .malformed,
        "the policy names more than \(FirmwarePolicy.maximumCommandCount) commands, the maximum in an image",
        hint: "leave out commands that the device does not need")
    case .ledger(let fault): self.init(fault)
    case .failed: self.init(.fault, "the random source, the clock or the cryptographic library failed")
    }
  }

  private init(_ fault: ProvisionFault, image path: String) {
    switch fault {
    case .blank: self.init(.malformed, "\(path) is blank: it was never provisioned", hint: Self.whatImagesAre)
    case .foreign:
      self.init(.malformed, "\(path) is not the image of a device's flash", hint: Self.whatImagesAre)
    case .newerVersion: self.init(.malformed, "\(path) was written by a later version", hint: "use that version")
    case .damaged:
      self.init(
        .malformed, "\(path) is damaged or only partly provisioned: its device has no identity",
        hint: Self.whenImageIsLost)
    case .tooLarge, .flash:
      self.init(.fault, "\(path): the key, the issuers and the policy do not fit into the device's flash")
    }
  }

  /// Creates the failure for the image of a device's flash that could not be created.
  package init(making fault: FirmwareImageFault, image path: String) {
    guard case .file(let error) = fault, error.kind != .exists else {
      self.init(fault, image: path)
      return
    }
    self.init(making: error)
  }

  /// Creates the failure for the file of a flash image that could not be read or written.
  package init(image error: FileError) {
    switch error.kind {
    case .locked: self.init(error, hint: "stop the device that runs from it, or wait for the other command")
    case .notFound, .tooLarge: self.init(error, hint: Self.whatImagesAre)
    case .exists: self.init(error, hint: "use another name")
    case .isDirectory, .notDirectory, .notRegular, .symbolicLink: self.init(error, hint: "give the image file itself")
    case .noPermission, .readOnly, .tooOpen, .wrongOwner, .diskFull, .anotherKind, .other:
      self.init(error)
    }
  }

  private static let whatImagesAre = "holdfast device init --firmware creates one"
  private static let whenImageIsLost =
    "an older copy would forget which tokens and codes were used: create a new image with holdfast device init --firmware"
}
