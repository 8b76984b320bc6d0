#if Service
import HoldfastService
import Logging
import NIOPosix

extension Notices<ReceiptState> {
  /// The lines that say whether this instance signs receipts for audit logs: one at the start, and one after each change.
  static func aboutReceipts(in fleet: Fleet, threads: NIOThreadPool, logger: Logger) -> Notices {
    Notices(threads: threads, logger: logger, finding: { try fleet.receiptChange() }) { state, logger in
      let metadata = state.remedy.map { ["remedy": Logger.MetadataValue.string($0)] }
      logger.log(level: state == .standby ? .info : .warning, "\(state.sentence)", metadata: metadata)
    }
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
