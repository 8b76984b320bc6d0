import ArgumentParser

/// How long a verb waits for the other end.
struct TimeoutOptions: ParsableArguments {
  @Option(help: "Seconds to wait for the device, 1 to 3600.")
  var timeout: Int = 10

  /// The time in milliseconds.
  func milliseconds() throws(Failure) -> Int {
    guard (1...3600).contains(timeout) else { throw Failure(.usage, "--timeout is from 1 to 3600 seconds") }
    return timeout * 1000
  }
}
