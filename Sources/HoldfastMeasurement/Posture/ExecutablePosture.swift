import CHost
import Glibc
import HoldfastLinux

/// The protection of the executable file: who could replace it or write to it, and whether it gives its process more rights.
struct ExecutablePosture {
  let observations: [Posture.Observation]

  /// Examines the file of this process and each folder from `/` down to it.
  ///
  /// - Parameter user: the user that runs the program, who may own all of them.
  init(_ files: HostFiles, user: uid_t = geteuid()) {
    var walk = Walk(user: user)
    do throws(MeasurementError) {
      let path = String(decoding: try files.destination(of: "/proc/self/exe", as: .executable), as: UTF8.self)
      walk.examine(path)
      if let file = try? files.open("/proc/self/exe", as: .executable) { walk.examineFile(file) }
    } catch {}
    observations = walk.observations
  }

  /// A walk from the root folder to a file.
  private struct Walk {
    let user: uid_t
    private var isComplete = false
    private var isFileExamined = false
    private var writable: String?
    private var foreign: String?
    private var privilege: String?

    init(user: uid_t) { self.user = user }

    /// Looks at each folder on the path, and at the file. Nothing on a path that the kernel states is a symbolic link.
    mutating func examine(_ path: String) {
      guard path.hasPrefix("/") else { return }
      var places = ["/"]
      for piece in path.split(separator: "/") { places.append((places.count == 1 ? "" : places.last!) + "/" + piece) }
      var statuses: [stat] = []
      for place in places {
        var status = stat()
        guard unsafe lstat(place, &status) == 0, status.st_mode & S_IFMT != S_IFLNK else { return }
        statuses.append(status)
      }
      for (index, status) in statuses.enumerated() {
        if !isTrusted(status) { foreign = foreign ?? places[index] }
        if isWritable(status, above: index + 1 < statuses.count ? statuses[index + 1] : nil) {
          writable = writable ?? places[index]
        }
      }
      isComplete = true
    }

    private func isTrusted(_ status: stat) -> Bool { status.st_uid == 0 || status.st_uid == user }

    /// Returns whether a group or everybody can write. In a sticky folder such as `/tmp`, others cannot replace what belongs to
    /// somebody else. An access control list shows in the bits of the group.
    private func isWritable(_ status: stat, above next: stat?) -> Bool {
      guard status.st_mode & 0o022 != 0 else { return false }
      guard let next, status.st_mode & S_ISVTX != 0 else { return true }
      return !isTrusted(next)
    }

    mutating func examineFile(_ file: borrowing Descriptor) {
      guard let status = try? file.status() else { return }
      if status.st_mode & (S_ISUID | S_ISGID) != 0 { privilege = "setuid or setgid" }
      switch holdfast_has_file_capabilities(file.number) {
      case 1: privilege = privilege ?? "capabilities"
      case 0: break
      default: return
      }
      isFileExamined = true
    }

    var observations: [Posture.Observation] {
      [
        observation(.executableWritable, writable, isComplete), observation(.executableForeign, foreign, isComplete),
        observation(.executablePrivileged, privilege, isFileExamined),
      ]
    }

    private func observation(_ finding: PostureFinding, _ details: String?, _ isKnown: Bool) -> Posture.Observation {
      guard let details else { return Posture.Observation(finding, isKnown ? .clear : .unknown) }
      return Posture.Observation(finding, .found, details.utf8)
    }
  }
}
