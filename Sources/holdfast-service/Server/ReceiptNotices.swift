#if Service
import HoldfastService
import Logging
import NIOPosix
import ServiceLifecycle

/// The lines in the log that say whether this instance signs receipts for audit logs: one at the start, and one after each change.
struct ReceiptNotices: Service {
  let fleet: Fleet
  let threads: NIOThreadPool
  let logger: Logger

  /// The time between two looks at the database.
  private static let pause = Duration.seconds(10)

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      while true {
        // While the database does not answer, there is nothing to say about receipts.
        if let state = try? await threads.runIfActive({ try fleet.receiptChange() }) { report(state) }
        try await Task.sleep(for: Self.pause)
      }
    }
  }

  private func report(_ state: ReceiptState) {
    let metadata = state.remedy.map { ["remedy": Logger.MetadataValue.string($0)] }
    logger.log(level: state == .standby ? .info : .warning, "\(state.sentence)", metadata: metadata)
  }
}

extension ReceiptState {
  /// Whether the service signs receipts, and why, for operators.
  fileprivate var sentence: String {
    switch self {
    case .standby: "receipts for audit logs are signed: a synchronous standby has their entries"
    case .waived: "receipts for audit logs are signed, although no standby needs to have their entries"
    case .oneHost: "no receipts for audit logs are signed: the database is on this host only"
    case .asynchronous: "no receipts for audit logs are signed: the database has no synchronous standby"
    case .noStandby: "no receipts for audit logs are signed: no synchronous standby of the database is connected"
    }
  }

  /// The steps of an operator after which receipts are signed safely; nil if they are.
  fileprivate var remedy: String? {
    let waiver = "or accept that entries are lost with the database: serve --receipts-without-standby"
    return switch self {
    case .standby: nil
    case .waived: "without --receipts-without-standby, only what a synchronous standby has is acknowledged"
    case .oneHost: "use PostgreSQL with a synchronous standby, \(waiver)"
    case .asynchronous: "set synchronous_standby_names, \(waiver)"
    case .noStandby: "start the standby, or grant pg_read_all_stats to the service's role, \(waiver)"
    }
  }
}
#endif
