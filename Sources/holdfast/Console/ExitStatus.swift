/// The exit status of a run, as `holdfast --help` explains it. 0 if and only if the whole operation succeeded.
enum ExitStatus: Int32 {
  case denied = 1
  case malformed = 2
  case impostor = 3
  case usage = 64
  case unavailable = 69
  case fault = 70
  case noPermission = 77
}
