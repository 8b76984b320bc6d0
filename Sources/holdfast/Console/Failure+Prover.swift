import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOnline
import HoldfastProver
import HoldfastTransport

extension Failure {
  /// Creates the failure for a process or host that could not be measured. No component is skipped instead.
  package init(_ error: MeasurementError) {
    switch error {
    case .nonceLength:
      self.init(.malformed, "the nonce is not 16 bytes")
    case .malformedConfiguration:
      self.init(.malformed, "the measurement configuration is malformed or damaged", hint: Self.enrolAgain)
    case .unknownKey:
      self.init(
        code: .unknownProofKey, "this build does not have the measurement proof key that the baseline was taken with",
        hint: "use the release that enrolled, or enrol again: holdfast enroll --replace")
    case .unknownComponent:
      self.init(
        code: .unknownComponent, "the baseline names a component that this build does not measure",
        hint: Self.enrolAgain)
    case .unreadable(let source, EXDEV):
      self.init(
        code: .mountedOver, "\(Self.path(source)) does not belong to this process: something else is mounted there",
        hint: "stop using this host until you know why")
    case .unreadable(let source, let code):
      self.init(code: .unreadableSource, "\(Self.path(source)) could not be measured: system error \(code)")
    case .malformed(let source):
      self.init(.fault, "\(Self.path(source)) does not have the kernel's format")
    case .deviceSecret(let fault):
      self.init(fault)
    case .evidence:
      self.init(.malformed, "the app's name or version does not fit into the evidence")
    case .cryptography:
      self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  private static let enrolAgain = "enrol again: holdfast enroll --replace"

  init(_ fault: HostSecretFault) {
    let path = HostSecretPlace.path ?? "device.secret"
    let secret = "this host's secret \(path)"
    switch fault {
    case .noLocation:
      self.init(
        .malformed, "there is no place for this host's secret, device.secret",
        hint: "set HOME, or XDG_DATA_HOME to a private folder")
    case .missing:
      self.init(
        code: .hostSecretMissing, "\(secret) is missing",
        hint: "restore it, or enrol this host again: holdfast enroll --replace")
    case .notPlainFile:
      self.init(
        .malformed, "\(secret) is not a regular file", hint: "remove it and enrol again with --replace")
    case .wrongOwner:
      self.init(.noPermission, "\(secret) belongs to another user", hint: "run as the user that enrolled")
    case .wrongMode:
      self.init(.noPermission, "\(secret) does not have mode 0600", hint: "chmod 600 \(path.shellWord)")
    case .wrongSize:
      self.init(
        code: .hostSecretDamaged, "\(secret) is damaged",
        hint: "restore it, or remove it and enrol again with --replace")
    case .folderNotPrivate:
      self.init(
        .noPermission, "the folder of \(secret) belongs to another user, or is open to others",
        hint: "chmod 700 the folder, as the user that owns it")
    case .system(ENAMETOOLONG), .system(ENOTDIR):
      self.init(
        .malformed,
        "there is no place for this host's secret, device.secret: XDG_DATA_HOME or HOME does not name a folder that can be created",
        hint: "set XDG_DATA_HOME to a private folder")
    case .system(let code): self.init(FileError(SystemError(code), at: secret))
    }
  }

  private static func path(_ source: MeasuredSource) -> String {
    switch source {
    case .executable: "/proc/self/exe"
    case .memoryMap: "/proc/self/maps"
    case .memory: "/proc/self/mem"
    case .pageMap: "/proc/self/pagemap"
    case .mappedFile: "a file that code is mapped from"
    case .environment: "/proc/self/environ"
    case .threads: "/proc/self/task"
    case .preloadFile: "/etc/ld.so.preload"
    case .sockets: "/proc/net/tcp"
    case .operatingSystem: "/etc/os-release"
    case .machineID: "/etc/machine-id"
    case .serialNumber: "/proc/device-tree/serial-number"
    case .processor: "/proc/cpuinfo"
    }
  }

  /// Creates the failure for a prover's state folder that cannot be used.
  ///
  /// - Parameters:
  ///   - folder: The folder's path.
  ///   - endpoint: The endpoint at which a device answered, if one did.
  package init(_ fault: StateFolderFault, folder: String, endpoint: Endpoint? = nil) {
    let place = endpoint.map { " at \($0)" } ?? ""
    let enroll = "holdfast enroll --device DESCRIPTOR --service SERVICE --state \(folder.shellWord)"
    switch fault {
    case .file(let error) where error.kind == .notDirectory:
      self.init(error, hint: "is \(folder) a file? Choose another folder with --state")
    case .file(let error): self.init(error, hint: "the state folder is damaged; enrol again: \(enroll) --replace")
    case .missing(let path):
      self.init(
        code: .stateIncomplete, "\(path) does not exist",
        hint: "the enrolment is incomplete; enrol again: \(enroll) --replace")
    case .damaged(let path):
      self.init(
        code: .stateDamaged, "\(path) is damaged or belongs to another enrolment",
        hint: "enrol again: \(enroll) --replace")
    case .otherVersion(let path):
      self.init(
        code: .stateOtherVersion, "\(path) was written by another version",
        hint: "use that version, or enrol again: \(enroll) --replace")
    case .nothingEnrolled:
      self.init(code: .nothingEnrolled, "no device is enrolled in \(folder)", hint: "enrol first: \(enroll)")
    case .severalEnrolled(let devices):
      self.init(
        code: .severalEnrolled, "\(folder) is enrolled for \(Self.list(devices))",
        hint: "name one of them with --device")
    case .notEnrolled(let device, let enrolled):
      self.init(
        code: .notEnrolled,
        endpoint == nil
          ? "device \(hexadecimal(device)) is not enrolled in \(folder); \(Self.list(enrolled)) \(enrolled.count == 1 ? "is" : "are")"
          : "expected \(Self.list(enrolled, or: true)), for which \(folder) is enrolled, but device \(hexadecimal(device)) "
            + "answers\(place); nothing was sent to it",
        hint: endpoint == nil
          ? "holdfast status --state \(folder.shellWord) lists them; to enrol for it too: \(enroll)"
          : "is that the right address? To enrol for this device too: \(enroll)")
    case .anotherDevice(let answered, let expected):
      self.init(
        code: .anotherDevice,
        "expected device \(hexadecimal(expected)), but device \(hexadecimal(answered)) answers\(place); nothing was sent to it",
        hint: "is that the right address?")
    case .anotherKey(let device, let enrolled, let answered):
      self.init(
        code: .anotherKey,
        "device \(hexadecimal(device)) answers\(place) with the key \(hexadecimal(answered)), but was enrolled with "
          + "\(hexadecimal(enrolled)); nothing was sent to it",
        hint: "was it set up again? If its owner confirms that, enrol with its new descriptor: \(enroll) --replace")
    case .alreadyEnrolled(let device):
      self.init(
        code: .alreadyEnrolled,
        "device \(hexadecimal(device)) is already enrolled in \(folder); nothing was overwritten",
        hint: "to replace the old token with a new one, add --replace")
    case .baselineWaits(let path):
      self.init(
        code: .baselineWaits, "a baseline is waiting for its token in \(path); nothing was overwritten",
        hint: "continue with holdfast issue or the same holdfast enroll, or add --replace to measure again")
    case .noBaseline(let device):
      self.init(
        code: .noBaseline, "no baseline in \(folder) is waiting for a token of device \(hexadecimal(device))",
        hint: "measure first: holdfast measure --state \(folder.shellWord) --out EVIDENCE, then holdfast attest")
    case .notAToken:
      self.init(
        code: .notAToken, "that is not a measurement token", hint: "the backend sends one in exchange for the evidence")
    case .badTerms:
      self.init(
        code: .badTerms,
        "the terms that came with the token are not signed, or belong to another token; nothing was stored",
        hint: "enrol again; if it happens once more, ask the operator of the issuer")
    case .usedBaseline(let device):
      self.init(
        code: .usedBaseline,
        "the baseline in \(folder) belongs to device \(hexadecimal(device)), and is valid for one device only",
        hint: "measure again: holdfast measure --state \(folder.shellWord) --out EVIDENCE, then holdfast attest")
    case .replaced(let device):
      self.init(
        code: .enrolmentReplaced,
        "another process has enrolled for device \(hexadecimal(device)) meanwhile; the newer enrolment stays",
        hint: "to remove it too, run the command again")
    case .busy:
      self.init(code: .stateBusy, "another process is changing \(folder)", hint: "try again when it has finished")
    case .noExchange(let path):
      self.init(
        code: .noExchange, "the file system of \(path) cannot replace a folder in one step, so nothing was replaced",
        hint: "enrol into another state folder, or on another file system")
    case .cryptography: self.init(.fault, "the cryptographic library failed")
    }
  }

  /// Lists the ids of up to four devices and the number of the others.
  private static func list(_ devices: [DeviceID], or isAlternative: Bool = false) -> String {
    var words = devices.prefix(4).map { hexadecimal($0) }
    if devices.count > 4 { words.append("\(devices.count - 4) more") }
    let last = words.removeLast()
    let noun = devices.count == 1 ? "device " : isAlternative ? "one of the devices " : "devices "
    return noun + (words.isEmpty ? "" : words.joined(separator: ", ") + (isAlternative ? " or " : " and ")) + last
  }
}

extension Failure {
  /// Creates the failure of a prover.
  ///
  /// - Parameters:
  ///   - folder: The path of the state folder, if there is one.
  ///   - endpoint: The endpoint of the device.
  init(_ error: ProverError, folder: String = "", endpoint: Endpoint) {
    switch error {
    case .state(let fault): self.init(fault, folder: folder, endpoint: endpoint)
    case .measurement(let error): self.init(error)
    case .transport(let error): self.init(error, endpoint: endpoint)
    case .session(let fault): self.init(fault, endpoint: endpoint)
    case .activation(let fault): self.init(fault, endpoint: endpoint)
    case .requestNumber(let fault): self.init(fault)
    case .posture(let fault): self.init(fault)
    case .refused(let refusal): self.init(refusal, folder: folder)
    case .noThread: self.init(.fault, "the system has no thread for the proof")
    case .channelInUse: self.init(.unavailable, "another proof is running over the channel")
    case .malformedMail: self.init(.malformed, "the bulletins of the service are not such")
    case .malformedAnswer: self.init(CarrierFailure(.malformedAnswer), pinsIn: nil)
    case .reservedNonce: self.init(error, folder: folder)
    case .cancelled: self.init(TransportError.cancelled, endpoint: endpoint)
    }
  }

  /// Creates the failure of a prover that connects to no device.
  init(_ error: ProverError, folder: String) {
    switch error {
    case .state(let fault): self.init(fault, folder: folder)
    case .measurement(let error): self.init(error)
    case .requestNumber(let fault): self.init(fault)
    case .posture(let fault): self.init(fault)
    case .refused(let refusal): self.init(refusal, folder: folder)
    case .malformedAnswer: self.init(CarrierFailure(.malformedAnswer), pinsIn: nil)
    case .reservedNonce:
      self.init(
        .usage, "the first digit of --nonce must be 0 to 7",
        hint: "no proof is printed for the nonces of sessions, which have the top bit set; let the verifier clear it")
    case .transport, .session, .activation, .noThread, .channelInUse, .malformedMail, .cancelled:
      self.init(.fault, "the prover failed in an unexpected way")
    }
  }

  fileprivate init(_ fault: RequestNumberFault) {
    switch fault {
    case .exhausted(let path):
      self.init(
        .malformed, "there is no request number after the one in \(path)", hint: "remove that file and enrol again")
    case .locked(let path):
      self.init(.unavailable, "another process holds the lock on \(path)", hint: "try again")
    case .file(let error): self.init(error)
    }
  }

  /// Creates the failure for a session that ended without a verdict.
  private init(_ fault: ProverFault, endpoint: Endpoint) {
    switch fault {
    case .malformed:
      self.init(
        .malformed, "the other end does not speak this protocol", hint: "is \(endpoint) a Holdfast device?")
    case .anotherDevice, .anotherKey:
      self.init(
        .malformed, "the device that answers at \(endpoint) is not the one of a moment ago; nothing was sent to it",
        hint: "try again; is there more than one device at that endpoint?")
    case .impostor:
      self.init(
        .impostor, "the other end did not prove that it is the enrolled device",
        hint: "check that \(endpoint) is the right device; do not use this one")
    case .random, .cryptography:
      self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  /// Creates the failure for an exchange that ended early.
  private init(_ fault: ActivationFault, endpoint: Endpoint) {
    switch fault {
    case .malformed:
      self.init(
        .malformed, "the other end does not speak this protocol", hint: "is \(endpoint) a Holdfast device?")
    case .refused(.otpRejected):
      self.init(
        .denied, "the device does not accept the code",
        hint: "a code is valid for ten minutes, one use and one purpose: ask the device's owner for another one")
    case .refused(let status): self.init(.denied, status.explanation.text, hint: status.explanation.hint)
    case .impostor:
      self.init(
        .impostor, "the other end does not know the code, so it is not the device whose owner issued it",
        hint: "check that \(endpoint) is the right device; do not use this one")
    case .random, .cryptography:
      self.init(.fault, "the cryptographic library or the random source failed")
    }
  }
}

extension Console {
  /// Prints what a prover warns of.
  static func warn(_ warning: ProverWarning) {
    switch warning {
    case .damagedRequestNumber(let path):
      self.warning("\(path) is damaged; request numbers continue from the clock", warning.code)
    case .unwrittenRequestNumber(let error):
      self.warning("\(Failure(error).message); request numbers now rise only with the clock", warning.code)
    case .unrecordedRequestNumber(let fault): self.warning(Failure(fault).message, warning.code)
    case .posture(let number, let findings):
      self.warning("the posture rules \(number) warn: \(findings.joined(separator: ", "))", warning.code)
    case .outdatedPostureRules(let number, let until):
      self.warning("newer posture rules than \(number) were expected by \(Timestamp(unixSeconds: until))", warning.code)
    case .unrecordedToken(let fault):
      self.warning("\(Failure(fault, folder: "").message); the next proof sends the whole token again", warning.code)
    case .offlineLimitNear, .notCompliant, .clockBehind, .unrecordedTime, .anotherIssuerKey: warnOfTerms(warning)
    }
  }
}
