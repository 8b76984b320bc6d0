import HoldfastJSON

/// Why a verb ends without success: the exit status, one sentence, and what the user can do.
///
/// Texts are made here and in `Failure+….swift` alone. They name files and numbers, never contents.
struct Failure: Error {
  let status: ExitStatus
  let message: String
  let hint: String?
  /// Whether a result was printed that says the same; then `--json` prints no other object.
  private(set) var hasResult = false

  init(_ status: ExitStatus, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = message
    self.hint = hint
  }

  /// A secret stands in the arguments, which every process of this host can read. It is not repeated.
  init(secretGivenTo option: String, hint: String) {
    self.init(.usage, "\(option) takes no secret itself: others could read it in the list of processes", hint: hint)
  }

  /// What `--json` prints.
  var json: JSONValue {
    .object(
      [("error", .string(message))] + (hint.map { [("hint", .string($0))] } ?? [])
        + [("exit", .integer(UInt64(status.rawValue)))])
  }

  /// SIGINT or SIGTERM came before the end.
  static var interrupted: Failure { Failure(.unavailable, "it was ended before it was done") }

  /// The same, where the result was printed already.
  func afterResult() -> Failure {
    var failure = self
    failure.hasResult = true
    return failure
  }
}
