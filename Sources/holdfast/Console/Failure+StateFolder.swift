import HoldfastCore
import HoldfastKeys
import HoldfastStorage
import HoldfastText
import HoldfastTransport

extension Failure {
  /// A prover's state folder cannot serve.
  ///
  /// - Parameters:
  ///   - folder: The folder's path.
  ///   - endpoint: Where a device answered, if one did.
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

  /// The ids of up to four devices, and the number of the others.
  private static func list(_ devices: [DeviceID], or isAlternative: Bool = false) -> String {
    var words = devices.prefix(4).map { hexadecimal($0) }
    if devices.count > 4 { words.append("\(devices.count - 4) more") }
    let last = words.removeLast()
    let noun = devices.count == 1 ? "device " : isAlternative ? "one of the devices " : "devices "
    return noun + (words.isEmpty ? "" : words.joined(separator: ", ") + (isAlternative ? " or " : " and ")) + last
  }
}
