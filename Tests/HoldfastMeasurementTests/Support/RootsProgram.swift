import Foundation
import HoldfastLinux
import HoldfastMeasurement
import Synchronization
import Testing

/// The programs of root's that the tests of a suite use. All are made at once, so that they become old together, and are removed at
/// the end.
struct RootsPrograms: SuiteTrait, TestScoping {
  /// The programs that only one test uses, and the one that others share.
  private static let made = Mutex<(fresh: [RootsProgram], shared: RootsProgram?, all: [RootsProgram])>(([], nil, []))
  private static let freshCount = 13

  /// Returns the program of the tests that change processes only.
  static func shared() throws -> RootsProgram {
    try make()
    return try #require(made.withLock { $0.shared })
  }

  /// Returns a program whose files a test may change. If more are needed than are made at once, the test waits for it to become old.
  static func fresh() throws -> RootsProgram {
    try make()
    if let program = made.withLock({ $0.fresh.popLast() }) { return program }
    let program = try RootsProgram()
    made.withLock { $0.all.append(program) }
    return program
  }

  private static func make() throws {
    guard made.withLock({ $0.all.isEmpty }) else { return }
    let programs = try (0...freshCount).map { _ in try RootsProgram() }
    made.withLock { $0 = (Array(programs.dropFirst()), programs[0], programs) }
  }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    defer {
      for program in Self.made.withLock({ $0.all }) { program.remove() }
      Self.made.withLock { $0 = ([], nil, []) }
    }
    try await function()
  }
}

/// A folder of root's with a probe, and libraries that only root can change, for a user who is not root.
final class RootsProgram: Sendable {
  static let user: UInt32 = 65534
  let path = "/opt/hf-" + UUID().uuidString.prefix(8)
  var probe: String { path + "/probe" }
  var library: String { path + "/lib/libcrypto.so.3" }
  var configuration: String { path + "/data/config" }
  var environment: [String: String] { ["XDG_DATA_HOME": path + "/data", "LD_LIBRARY_PATH": path + "/lib"] }
  static let asUser = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
  /// Runs what follows on a command line with mounts of its own.
  static let inOwnMounts = ["unshare", "-m", "--propagation", "private"]
  /// Runs what follows in a user namespace in which every user of this system has the same number.
  static let inMappedUsers = [
    "sh", "-c",
    """
    (
      until echo '0 0 65536' > /proc/$$/uid_map; do :; done 2>/dev/null
      echo '0 0 65536' > /proc/$$/gid_map
    ) &
    exec unshare --user sh -c 'until read -r line < /proc/self/gid_map; do :; done 2>/dev/null; exec "$0" "$@"' "$0" "$@"
    """,
  ]

  /// Whether the tests can make such a folder here: as root, on a file system that the conditions permit.
  static let isPossible: Bool = {
    guard geteuid() == 0, let folder = try? Descriptor(opening: "/opt", flags: O_RDONLY | O_DIRECTORY) else {
      return false
    }
    return (try? fileSystemType(of: folder.number)).map { [0xef53, 0x5846_5342].contains($0) } ?? false
  }()

  /// Whether programs for file systems are installed.
  static func hasTools(_ names: String...) -> Bool {
    names.allSatisfy { name in
      ["/usr/sbin/", "/usr/bin/", "/sbin/"].contains { FileManager.default.isExecutableFile(atPath: $0 + name) }
    }
  }

  init() throws {
    try FileManager.default.createDirectory(atPath: path + "/lib", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: path + "/data", withIntermediateDirectories: false, attributes: [.ownerAccountID: Self.user])
    try FileManager.default.copyItem(atPath: Programs.probe, toPath: probe)
    try FileManager.default.copyItem(
      atPath: URL(filePath: Programs.loaded("libcrypto.so.3")).resolvingSymlinksInPath().path, toPath: library)
    try takeBaseline(configuration, policy: 1)
  }

  private func takeBaseline(_ path: String, policy: Int) throws {
    let (status, output) = try Programs.run(
      "/usr/bin/env", Self.asUser + [probe, "baseline", path],
      environment: environment.merging(["HOLDFAST_PROBE_POLICY": "\(policy)", "PATH": "/usr/bin:/bin"]) { $1 })
    try #require(status == 0, "\(output)")
  }

  /// Makes a configuration that does not permit known code, and returns its path.
  func plainConfiguration() throws -> String {
    let plain = path + "/data/plain"
    try takeBaseline(plain, policy: 0)
    return plain
  }

  /// Unmounts whatever is mounted in the folder, and removes it. A test that leaves something behind fails.
  func remove() {
    do {
      for point in try mountPoints() where unsafe umount2(point, Int32(MNT_DETACH)) != 0 {
        Issue.record("\(point) cannot be unmounted: \(unsafe String(cString: strerror(errno)))")
      }
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    } catch { Issue.record("\(path) cannot be removed: \(error)") }
  }

  /// The mount points in the folder, the innermost first. Mounts of a probe's own end with it. Source: proc_pid_mountinfo(5).
  private func mountPoints() throws -> [String] {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/mountinfo"))
    let lines = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self).split(separator: "\n")
    return lines.map { String($0.split(separator: " ")[4]) }.filter { $0.hasPrefix(path + "/") }.reversed()
  }

  /// Starts the probe as the user; `before` comes before that on the command line.
  func start(before: [String] = [], as user: [String] = asUser, configuration: String? = nil) throws -> LongLivedProbe {
    try LongLivedProbe(
      before + user + [probe], configuration: configuration ?? self.configuration, environment: environment)
  }

  /// Starts the probe when its files are old enough, and lets it measure itself until its code is known.
  func startKnown() throws -> (probe: LongLivedProbe, answer: LongLivedProbe.Answer) {
    try waitForAge()
    let probe = try start()
    let answer = try probe.measure()
    try #require(answer.isKnown)
    return (probe, answer)
  }

  /// The time in which a change becomes old enough for a file to count.
  static let ageMicroseconds: UInt32 = 3_010_000

  /// Waits until the change times of all files are more than two seconds ago by the file system's clock, which no test can set.
  func waitForAge() throws { while try age() <= 2 { usleep(10_000) } }

  /// The seconds since the last change of a file.
  func age() throws -> Int {
    var changed = 0
    for path in [probe, library] {
      var status = stat()
      try #require(unsafe stat(path, &status) == 0)
      changed = max(changed, status.st_ctim.tv_sec)
    }
    return time(nil) - changed
  }

  /// Runs a command of root's.
  func shell(_ command: String) throws {
    let (status, output) = try Programs.run(
      "/bin/sh", ["-c", command], environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
    try #require(status == 0, "\(command): \(output)")
  }

  /// The last byte of the library's code in the process, behind its last instruction.
  func lastCodeOffset(in process: Int32) throws -> off_t {
    let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(process)/maps"))
    let map = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    let line = try #require(map.split(separator: "\n").first { $0.contains(" r-xp ") && $0.hasSuffix(library) })
    let fields = line.split(separator: " ")
    let addresses = fields[0].split(separator: "-").map { Int($0, radix: 16)! }
    return off_t(Int(fields[2], radix: 16)! + addresses[1] - addresses[0] - 1)
  }
}
