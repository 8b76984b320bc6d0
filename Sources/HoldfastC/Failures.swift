import CHoldfast
import HoldfastAuthenticator
import HoldfastCore
import HoldfastDevice
import HoldfastMeasurement
import HoldfastProver
import HoldfastLinux
import HoldfastStorage
import HoldfastTransport
import HoldfastUser

// Each error of the libraries as one of the header's.

extension CallFailure {
  init(_ error: ProverError) {
    switch error {
    case .state(let fault): self.init(fault)
    case .measurement(let error): self.init(error)
    case .transport(let error): self.init(error)
    case .session(let fault): self.init(fault)
    case .activation(let fault): self.init(fault)
    case .requestNumber(.file(let error)): self.init(error)
    case .requestNumber(.locked): self.init(HF_ERROR_BUSY)
    case .requestNumber(.exhausted): self.init(HF_ERROR_DAMAGED)
    case .refused: self.init(HF_ERROR_NOT_ENROLLED)
    case .noThread: self.init(HF_ERROR_SYSTEM)
    case .channelInUse: self.init(HF_ERROR_BUSY)
    case .malformedMail, .malformedAnswer: self.init(HF_ERROR_ARGUMENT)
    case .reservedNonce: self.init(HF_ERROR_ARGUMENT)
    case .posture: self.init(HF_ERROR_MEASUREMENT)
    case .cancelled: self.init(HF_ERROR_CANCELLED)
    }
  }

  init(_ fault: StateFolderFault) {
    switch fault {
    case .file(let error): self.init(error)
    case .missing: self.init(HF_ERROR_MISSING)
    case .damaged, .badTerms: self.init(HF_ERROR_DAMAGED)
    case .otherVersion: self.init(HF_ERROR_VERSION)
    case .nothingEnrolled, .notEnrolled: self.init(HF_ERROR_NOT_ENROLLED)
    case .anotherDevice, .anotherKey: self.init(HF_ERROR_ANOTHER_DEVICE)
    case .alreadyEnrolled, .baselineWaits: self.init(HF_ERROR_ENROLLED)
    case .noBaseline, .usedBaseline: self.init(HF_ERROR_NO_BASELINE)
    case .notAToken, .severalEnrolled: self.init(HF_ERROR_ARGUMENT)
    case .busy, .replaced: self.init(HF_ERROR_BUSY)
    case .noExchange: self.init(HF_ERROR_SYSTEM)
    case .cryptography: self.init(HF_ERROR_CRYPTOGRAPHY)
    }
  }

  init(_ error: FileError) {
    switch error.kind {
    case .notFound: self.init(HF_ERROR_MISSING)
    case .noPermission, .readOnly, .tooOpen, .wrongOwner: self.init(HF_ERROR_PERMISSION)
    case .anotherKind, .isDirectory, .notDirectory, .notRegular, .symbolicLink: self.init(HF_ERROR_KIND)
    case .tooLarge: self.init(HF_ERROR_DAMAGED)
    case .locked: self.init(HF_ERROR_BUSY)
    case .diskFull: self.init(HF_ERROR_FULL)
    case .exists, .other: self.init(HF_ERROR_SYSTEM)
    }
  }

  init(_ error: MeasurementError) {
    switch error {
    case .cryptography: self.init(HF_ERROR_CRYPTOGRAPHY)
    case .nonceLength: self.init(HF_ERROR_ARGUMENT)
    default: self.init(HF_ERROR_MEASUREMENT)
    }
  }

  init(_ error: TransportError) {
    switch error {
    case .timedOutWaiting, .timedOutReading, .timedOutSending: self.init(HF_ERROR_TIMEOUT)
    case .tooLong, .truncated, .emptyFrame: self.init(HF_ERROR_PROTOCOL)
    case .permissionDenied, .groupNotAllowed, .unknownGroup: self.init(HF_ERROR_PERMISSION)
    case .cancelled: self.init(HF_ERROR_CANCELLED)
    default: self.init(HF_ERROR_CONNECTION)
    }
  }

  init(_ fault: ProverFault) {
    switch fault {
    case .malformed: self.init(HF_ERROR_PROTOCOL)
    case .anotherDevice, .anotherKey: self.init(HF_ERROR_ANOTHER_DEVICE)
    case .impostor: self.init(HF_ERROR_IMPOSTOR)
    case .random, .cryptography: self.init(HF_ERROR_CRYPTOGRAPHY)
    }
  }

  private init(_ fault: ActivationFault) {
    switch fault {
    case .malformed, .refused(.accepted): self.init(HF_ERROR_PROTOCOL)
    case .refused(.otpRejected): self.init(HF_ERROR_OWNER_CODE)
    case .refused(let status): self.init(status)
    case .impostor: self.init(HF_ERROR_IMPOSTOR)
    case .random, .cryptography: self.init(HF_ERROR_CRYPTOGRAPHY)
    }
  }

  init(_ error: UserExchangeError) {
    switch error {
    case .exchange(let error): self.init(error)
    case .authenticator(let fault): self.init(fault)
    case .alreadyActivated: self.init(HF_ERROR_EXISTS)
    case .unknownEnd: self.init(HF_ERROR_UNKNOWN_END)
    case .notAccepted(let outcome):
      // A device that answers a repetition has lost the value that was asked for: the call can be repeated.
      let status = outcome.verdict.status
      if status == .accepted { self.init(HF_ERROR_CONNECTION) } else { self.init(status) }
    case .unknownUser, .notActivated, .wrongHostCode: self.init(HF_ERROR_USER)
    case .recordsOfAnotherDevice: self.init(HF_ERROR_ANOTHER_DEVICE)
    case .malformedAnswer, .nothingChecked: self.init(HF_ERROR_PROTOCOL)
    case .noClock: self.init(HF_ERROR_SYSTEM)
    }
  }
}

extension CallFailure {
  init(_ fault: AuthenticatorFault) {
    switch fault {
    case .folder(let error): self.init(error)
    case .missing: self.init(HF_ERROR_MISSING)
    case .tooOpen, .readOnly: self.init(HF_ERROR_PERMISSION)
    case .corrupt, .rolledBack: self.init(HF_ERROR_DAMAGED)
    case .foreign: self.init(HF_ERROR_KIND)
    case .newerVersion: self.init(HF_ERROR_VERSION)
    case .busy: self.init(HF_ERROR_BUSY)
    case .diskFull: self.init(HF_ERROR_FULL)
    case .failed: self.init(HF_ERROR_SYSTEM)
    case .noRecords, .unknownRecord, .severalUsers, .severalRecords: self.init(HF_ERROR_RECORD)
    case .badQuestion, .badUser, .badIndex, .malformedUndoCode, .malformedAccount: self.init(HF_ERROR_ARGUMENT)
    case .weakPIN: self.init(HF_ERROR_PIN)
    case .changeOpen, .noChange, .wrongUndoCode: self.init(HF_ERROR_CHANGE)
    default: self.init(HF_ERROR_CODE)
    }
  }
}

extension CallFailure {
  init(_ fault: DeviceFolderFault) {
    switch fault {
    case .missing: self.init(HF_ERROR_MISSING)
    case .folder(let error): self.init(error)
    case .file(_, let fault): self.init(fault)
    case .incomplete, .halfMade: self.init(HF_ERROR_DAMAGED)
    case .counter(.noPermission), .counter(.ownerOnly): self.init(HF_ERROR_PERMISSION)
    case .counter, .key, .alreadyMade, .badTPMPath: self.init(HF_ERROR_SYSTEM)
    case .failed: self.init(HF_ERROR_CRYPTOGRAPHY)
    }
  }

  private init(_ fault: DeviceFileFault) {
    switch fault {
    case .file(let error): self.init(error)
    case .database(let error): self.init(error)
    case .corrupt, .otherDevice, .rolledBack: self.init(HF_ERROR_DAMAGED)
    case .newerVersion, .olderVersion: self.init(HF_ERROR_VERSION)
    }
  }

  private init(_ error: DatabaseError) {
    switch error {
    case .busy: self.init(HF_ERROR_BUSY)
    case .full: self.init(HF_ERROR_FULL)
    case .corrupt, .wrongType, .constraint: self.init(HF_ERROR_DAMAGED)
    case .foreign: self.init(HF_ERROR_KIND)
    case .newerVersion: self.init(HF_ERROR_VERSION)
    case .cannotOpen: self.init(HF_ERROR_MISSING)
    case .permission, .readOnly: self.init(HF_ERROR_PERMISSION)
    case .outOfRange, .misuse, .other: self.init(HF_ERROR_SYSTEM)
    }
  }

  init(_ fault: ServerFault) {
    switch fault {
    case .endpoint(_, let error), .listener(let error): self.init(error)
    case .ledger(.damaged): self.init(HF_ERROR_DAMAGED)
    case .ledger(.busy): self.init(HF_ERROR_BUSY)
    case .ledger(.readOnly): self.init(HF_ERROR_PERMISSION)
    case .alreadyServed: self.init(HF_ERROR_ORDER)
    case .ledger, .noDescriptors: self.init(HF_ERROR_SYSTEM)
    }
  }

  init(_ fault: DeviceFault) {
    switch fault {
    case .store, .encoding: self.init(HF_ERROR_SYSTEM)
    case .random, .cryptography: self.init(HF_ERROR_CRYPTOGRAPHY)
    }
  }
}
