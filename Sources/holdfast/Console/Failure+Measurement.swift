import Glibc
import HoldfastMeasurement
import HoldfastText

extension Failure {
  /// The process or its host could not be measured. Nothing is skipped instead.
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

  private init(_ fault: DeviceSecretFault) {
    let path = DeviceSecretPlace.path ?? "device.secret"
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
}
