import HoldfastStorage

/// Why a ledger could not be opened or written.
enum LedgerError: Error, Equatable {
  case database(DatabaseError)
  /// It is not the newest one, as the counter that anchors it tells.
  case rolledBack
  /// Its counter is another device's.
  case otherDevice
  /// The counter that anchors it could not be used.
  case counter(CounterFault)
}

extension LedgerFault {
  init(_ error: LedgerError) {
    self =
      switch error {
      case .database(let error): LedgerFault(error)
      case .rolledBack: .rolledBack
      case .otherDevice: .failed
      case .counter(let fault): .counter(fault)
      }
  }
}

extension DeviceFolderFault {
  init(_ error: LedgerError) {
    self =
      switch error {
      case .database(let error): .file(.ledger, DeviceFileFault(error))
      case .rolledBack: .file(.ledger, .rolledBack)
      case .otherDevice: .file(.ledger, .otherDevice)
      case .counter(let fault): .counter(fault)
      }
  }
}
