import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastStorage
import HoldfastTransport

extension Failure {
  /// Creates the failure for a process or host that could not be measured. No component is skipped instead.
  init(_ error: MeasurementError) {
    switch error {
    case .nonceLength:
      self.init(.malformed, "the nonce is not 16 bytes")
    case .malformedConfiguration:
      self.init(.malformed, "the measurement configuration is not one, or is damaged", hint: Self.enrolAgain)
    case .unknownKey:
      self.init(
        .malformed, "this build does not have the measurement proof key that the baseline was made with",
        hint: "use the release that enrolled, or enrol again: holdfast enroll --replace")
    case .unknownComponent:
      self.init(.malformed, "the baseline names a component that this build does not measure", hint: Self.enrolAgain)
    case .unreadable(let source, EXDEV):
      self.init(
        .fault, "\(Self.path(source)) is not this process's own: something else is mounted there",
        hint: "stop using this host until you know who did that")
    case .unreadable(let source, let code):
      self.init(.fault, "\(Self.path(source)) could not be measured: system error \(code)")
    case .malformed(let source):
      self.init(.fault, "\(Self.path(source)) is not in the form that the kernel gives it")
    case .deviceSecret(let fault):
      self.init(fault)
    case .evidence:
      self.init(.malformed, "the app's name or version does not fit the evidence")
    case .cryptography:
      self.init(.fault, "the cryptographic library or the random source failed")
    }
  }

  private static let enrolAgain = "enrol again: holdfast enroll --replace"

  private init(_ fault: HostSecretFault) {
    let path = HostSecretPlace.path ?? "device.secret"
    let secret = "this host's secret \(path)"
    switch fault {
    case .noLocation:
      self.init(
        .malformed, "there is no place for this host's secret, device.secret",
        hint: "set HOME, or XDG_DATA_HOME to a private folder")
    case .missing:
      self.init(
        .malformed, "\(secret) is gone", hint: "restore it, or enrol this host again: holdfast enroll --replace")
    case .notPlainFile:
      self.init(
        .malformed, "\(secret) is not a plain file", hint: "remove what is there and enrol again with --replace")
    case .wrongOwner:
      self.init(.noPermission, "\(secret) belongs to another user", hint: "run as the user who enrolled")
    case .wrongMode:
      self.init(.noPermission, "\(secret) has another mode than 0600", hint: "chmod 600 \(path.shellWord)")
    case .wrongSize:
      self.init(.malformed, "\(secret) is damaged", hint: "restore it, or remove it and enrol again with --replace")
    case .folderNotPrivate:
      self.init(
        .noPermission, "the folder of \(secret) is not this user's alone",
        hint: "chmod 700 the folder, as the user whom it belongs to")
    case .system(EACCES), .system(EPERM):
      self.init(.noPermission, "no permission for \(secret)", hint: "run as the user who enrolled")
    case .system(EROFS):
      self.init(.fault, "\(secret) is on a file system that is read-only", hint: Self.whenReadOnly)
    case .system(ENOSPC), .system(EDQUOT):
      self.init(.fault, "the disk is full, \(secret) was not written", hint: "free some space and run it again")
    case .system(ENAMETOOLONG), .system(ENOTDIR):
      self.init(
        .malformed,
        "there is no place for this host's secret, device.secret: XDG_DATA_HOME or HOME names no folder that can be made",
        hint: "set XDG_DATA_HOME to a private folder")
    case .system(let code):
      self.init(.fault, "\(secret) could not be used: system error \(code)")
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
  init(_ fault: StateFolderFault, folder: String, endpoint: Endpoint? = nil) {
    let place = endpoint.map { " at \($0)" } ?? ""
    let enroll = "holdfast enroll --device DESCRIPTOR --service SERVICE --state \(folder.shellWord)"
    switch fault {
    case .file(let error) where error.kind == .notDirectory:
      self.init(error, hint: "is \(folder) a file? Take another folder with --state")
    case .file(let error): self.init(error, hint: "the state folder is damaged: enrol again, \(enroll) --replace")
    case .missing(let path):
      self.init(
        .malformed, "\(path) is not there", hint: "the enrolment is not whole, enrol again: \(enroll) --replace")
    case .damaged(let path):
      self.init(.malformed, "\(path) is damaged or of another enrolment", hint: "enrol again: \(enroll) --replace")
    case .otherVersion(let path):
      self.init(
        .malformed, "\(path) was written by another version",
        hint: "use that version, or enrol again: \(enroll) --replace")
    case .nothingEnrolled:
      self.init(.malformed, "no device is enrolled in \(folder)", hint: "enrol first: \(enroll)")
    case .notEnrolled(let device, let enrolled):
      self.init(
        .malformed,
        endpoint == nil
          ? "device \(hexadecimal(device)) is not enrolled in \(folder); \(Self.list(enrolled)) \(enrolled.count == 1 ? "is" : "are")"
          : "expected \(Self.list(enrolled, or: true)), which \(folder) is enrolled for, but device \(hexadecimal(device)) "
            + "answers\(place); nothing was sent to it",
        hint: endpoint == nil
          ? "holdfast status --state \(folder.shellWord) lists them; to enrol it too: \(enroll)"
          : "is that the right address? To enrol for this device too: \(enroll)")
    case .anotherDevice(let answered, let expected):
      self.init(
        .malformed,
        "expected device \(hexadecimal(expected)), but device \(hexadecimal(answered)) answers\(place); nothing was sent to it",
        hint: "is that the right address?")
    case .anotherKey(let device, let enrolled, let answered):
      self.init(
        .malformed,
        "device \(hexadecimal(device)) answers\(place) with the key \(hexadecimal(answered)), but was enrolled with "
          + "\(hexadecimal(enrolled)); nothing was sent to it",
        hint: "was it set up anew? If its owner says so, enrol with its new descriptor: \(enroll) --replace")
    case .severalEnrolled(let devices):
      self.init(
        .usage, "\(devices.count) devices are enrolled in \(folder): \(Self.list(devices))",
        hint: "choose one by --device ID")
    case .alreadyEnrolled(let device):
      self.init(
        .malformed, "device \(hexadecimal(device)) is enrolled in \(folder) already, and nothing is overwritten",
        hint: "to take a new token in place of the old one, add --replace")
    case .baselineWaits(let path):
      self.init(
        .malformed, "a baseline waits for its token in \(path), and nothing is overwritten",
        hint: "go on with holdfast issue, or add --replace to measure anew")
    case .noBaseline(let device):
      self.init(
        .malformed, "no baseline waits in \(folder) for a token of device \(hexadecimal(device))",
        hint: "measure first: holdfast measure --state \(folder.shellWord) --out EVIDENCE, then holdfast attest")
    case .usedBaseline(let device):
      self.init(
        .malformed,
        "the baseline in \(folder) is that of device \(hexadecimal(device)), and serves for one device only",
        hint: "measure again: holdfast measure --state \(folder.shellWord) --out EVIDENCE, then holdfast attest")
    case .busy:
      self.init(.unavailable, "another process is changing \(folder)", hint: "try again when it is done")
    case .noExchange(let path):
      self.init(
        .fault, "the file system of \(path) cannot replace a folder in one step, so nothing was replaced",
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
