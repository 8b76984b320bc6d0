import Glibc

/// When an operation on the disk is to fail, and how.
package struct DiskFault: Sendable, Hashable {
  package enum Kind: Sendable, Hashable, CaseIterable {
    /// `EIO`.
    case failure
    /// `ENOSPC`.
    case full
    /// `EROFS`.
    case readOnly
    /// A write does half of its work, and the operation after it finds the disk full.
    case halfFull
  }

  /// The operation, counted from 0.
  package let operation: Int
  package let kind: Kind
  /// Whether all after it fail too.
  package let lasts: Bool

  package init(operation: Int, kind: Kind, lasts: Bool) {
    (self.operation, self.kind, self.lasts) = (operation, kind, lasts)
  }

  enum Effect {
    case none
    case error(Int32)
    case half
  }

  func effect(on index: Int, isWrite: Bool) -> Effect {
    let isFirst = index == operation
    guard isFirst || lasts && index > operation || kind == .halfFull && index == operation + 1 else { return .none }
    return switch kind {
    case .failure: .error(EIO)
    case .full: .error(ENOSPC)
    case .readOnly: .error(EROFS)
    case .halfFull: isFirst && isWrite ? .half : .error(ENOSPC)
    }
  }
}
