import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// A device, a service and an enrolled prover in a temporary folder. This program's verbs create them in separate
/// processes.
final class Playground {
  let folder: String
  private var servers: [ChildProcess] = []

  /// Creates the folder, which also holds the provers' local storage, so that the user's remains unchanged.
  ///
  /// From here on, SIGINT and SIGTERM end the servers and remove the folder before they end this process.
  init() throws(Failure) {
    TerminationSignals.hold()
    let place = Self.temporaryFolder
    var template = Array("\(place)/holdfast-XXXXXX".utf8CString)
    let made = unsafe (mkdtemp(&template) != nil)
    guard made else {
      throw Failure(.fault, "no temporary folder can be made in \(place)", hint: "set TMPDIR to a folder of yours")
    }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let folder = folder
    TerminationSignals.whenRaised {
      let failure = Failure.interrupted
      RunningChildren.endAll(thenExit: failure.status) {
        Self.removeAtOnce(folder)
        Console.report(failure)
      }
    }
    unsafe setenv("XDG_DATA_HOME", path("data"), 1)
    try Self.makeFolder(path("data"))
  }

  /// The folder in `TMPDIR`, unless the paths of sockets in it would be too long.
  private static var temporaryFolder: String {
    guard let variable = unsafe getenv("TMPDIR") else { return "/tmp" }
    let path = unsafe String(cString: variable)
    return path.hasPrefix("/") && path.utf8.count <= 64 ? path : "/tmp"
  }

  private static func makeFolder(_ path: String) throws(Failure) {
    do throws(FileError) { _ = try Files.createPrivateDirectory(at: path) } catch { throw Failure(error) }
  }

  /// Ends the servers and removes the folder.
  func remove() {
    for server in servers { server.terminate() }
    servers = []
    _ = try? ChildProcess.run(["/bin/rm", "-rf", folder])
  }

  /// Removes the folder when no child process can be registered any more.
  private static func removeAtOnce(_ folder: String) {
    let nowhere = unsafe open("/dev/null", O_WRONLY | O_CLOEXEC)
    // This process may still be writing there.
    for _ in 0..<10 where unsafe access(folder, F_OK) == 0 {
      guard let id = try? ChildProcess.spawn(["/bin/rm", "-rf", folder], output: nowhere) else {
        return
      }
      _ = RunningChildren.wait(id)
    }
  }

  func path(_ name: String) -> String { "\(folder)/\(name)" }

  /// The path of this program.
  static var program: String {
    get throws(Failure) {
      var target = [CChar](repeating: 0, count: Int(PATH_MAX))
      let count = unsafe readlink("/proc/self/exe", &target, target.count - 1)
      guard count > 0 else { throw Failure(.fault, "/proc/self/exe cannot be read") }
      return String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
  }

  /// Runs one of this program's verbs, which must succeed, and returns its output.
  @discardableResult
  func holdfast(_ arguments: String...) throws(Failure) -> String {
    let ending = try ChildProcess.run([try Self.program] + arguments)
    guard ending.status == 0 else {
      throw Failure(.fault, "holdfast \(arguments[0]) ended with \(ending.status ?? -1): \(ending.output)")
    }
    return ending.output
  }

  /// Creates a service.
  func makeService() throws(Failure) {
    try holdfast("service", "init", "--dir", path("service"))
    try Output.write(
      Array(try holdfast("service", "show", "--json", "--dir", path("service")).utf8), to: path("service.json"))
  }

  /// Creates a device that trusts the service and is registered there.
  func makeDevice() throws(Failure) {
    try holdfast("device", "init", "--dir", path("device"))
    try Output.write(
      Array(try holdfast("device", "show", "--json", "--dir", path("device")).utf8), to: path("device.json"))
    try holdfast("device", "trust", "--dir", path("device"), path("service.json"))
    try holdfast("service", "device", "add", "--dir", path("service"), path("device.json"))
  }

  /// Starts the device and waits until it listens.
  func serve() throws(Failure) -> Endpoint {
    let address = "unix:\(path("device")).sock"
    let server = try ChildProcess([
      try Self.program, "device", "serve", "--dir", path("device"), "--listen", address,
    ])
    servers.append(server)
    guard server.waitFor("listening at \(address)\n") else { throw Failure(.fault, "the device did not start") }
    return try Endpoint(argument: address)
  }

  /// Enrols the prover with the device.
  func enroll() throws(Failure) {
    try holdfast(
      "enroll", "--device", path("device.json"), "--service", path("service"), "--state", path("prover"))
  }
}
