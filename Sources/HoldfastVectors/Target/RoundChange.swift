import HoldfastCore

/// The difference between M2 of an invalid test of `SessionRound` and the right one, so that the same is wrong in a round with another
/// challenge.
struct RoundChange {
  /// The difference of a field.
  enum Difference {
    case none
    /// The field is null.
    case absent
    /// The bits of the field that are others.
    case bits([UInt8])
    /// The field is another one, of another length.
    case whole([UInt8])
  }

  /// Whether the head in M2 is another than the one for which the proofs are made.
  var head = false
  var integrityProof = Difference.none
  var deviceProof = Difference.none
  var sealed = Difference.none

  /// Whether nothing differs.
  var isNone: Bool {
    switch (head, integrityProof, deviceProof, sealed) {
    case (false, .none, .none, .none): true
    default: false
    }
  }

  init() {}

  /// Compares two messages. The wrong one must be well-formed.
  init(from right: [UInt8], to wrong: [UInt8]) throws(EncodingFault) {
    let (from, to) = (try Parts(right), try Parts(wrong))
    head = from.head != to.head
    integrityProof = Difference(from: from.integrityProof, to: to.integrityProof)
    deviceProof = Difference(from: from.deviceProof, to: to.deviceProof)
    sealed = Difference(from: from.sealed, to: to.sealed)
  }

  /// The fields of M2.
  private struct Parts {
    let head, sealed: [UInt8]
    let integrityProof, deviceProof: [UInt8]?

    init(_ m2: [UInt8]) throws(EncodingFault) {
      let message = try ProofMessage(m2.span)
      guard case .session(let head, let sealed) = message.form else { throw .unexpected }
      (self.head, self.sealed) = (array(head), array(sealed))
      integrityProof = message.integrityProof.map { array($0.bytes) }
      deviceProof = message.deviceProof.map { array($0.bytes) }
    }
  }
}

extension RoundChange.Difference {
  fileprivate init(from right: [UInt8]?, to wrong: [UInt8]?) {
    guard right != wrong else {
      self = .none
      return
    }
    guard let right, let wrong else {
      self = .absent
      return
    }
    self = right.count == wrong.count ? .bits(zip(right, wrong).map { $0 ^ $1 }) : .whole(wrong)
  }

  /// Returns a right field with the same difference.
  func of(_ right: [UInt8]) -> [UInt8] {
    switch self {
    case .none, .absent: right
    case .bits(let bits): zip(right, bits).map { $0 ^ $1 } + right.dropFirst(bits.count)
    case .whole(let other): other
    }
  }

  /// Returns a right proof with the same difference; nil for none.
  func of(_ right: MAC) -> MAC? {
    if case .absent = self { return nil }
    return MAC(of(array(right.bytes)).span)
  }
}
