#if Service
import Logging
import NIOPosix
import ServiceLifecycle

/// Lines in the log that tell operators about a state of the service, which the database is asked for every ten seconds.
struct Notices<Finding: Sendable>: Service {
  let threads: NIOThreadPool
  let logger: Logger
  /// Returns what operators have to be told; nil for nothing. It may wait for the database.
  let finding: @Sendable () throws -> Finding?
  /// Writes the line.
  let report: @Sendable (Finding, Logger) -> Void

  private static var pause: Duration { .seconds(10) }

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      while true {
        // While the database does not answer, there is nothing to say.
        if let found = try? await threads.runIfActive({ try finding() }) { report(found, logger) }
        try await Task.sleep(for: Self.pause)
      }
    }
  }
}
#endif
