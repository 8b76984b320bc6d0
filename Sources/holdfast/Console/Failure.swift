/// Why a verb ends without success: the exit status, one sentence, and what the user can do.
///
/// Texts are made here and in `Failure+….swift` alone. They name files and numbers, never contents.
struct Failure: Error {
  let status: ExitStatus
  let message: String
  let hint: String?

  init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }
}
