import HoldfastVectors

extension Failure {
  /// A file is not one of test vectors; nothing in it was judged.
  init(_ fault: VectorFault) {
    let place = fault.location.isEmpty ? fault.file : "\(fault.file), \(fault.location)"
    self.init(.malformed, "\(place): \(Self.reason(fault.kind))")
  }

  private static func reason(_ kind: VectorFault.Kind) -> String {
    switch kind {
    case .notJSON: "it is not strict JSON"
    case .tooLong: "it is too long"
    case .missing: "it is missing"
    case .wrongType: "it is of another JSON type"
    case .notHexadecimal: "it is not an even number of hex digits"
    case .wrongByteCount(let expected, let found): "it has \(found) bytes in place of \(expected)"
    case .wrongValue: "it cannot have that value"
    case .wrongNumberOfTests(let stated, let found): "numberOfTests says \(stated), and there are \(found)"
    case .noTests: "there is nothing to replay"
    case .duplicateTestID(let id): "tcId \(id) is there twice"
    case .unknownResult: "the result is neither valid, invalid nor acceptable"
    case .unknownType: "the schema does not have that type of group"
    case .keysDiffer: "the key does not belong to the private key or the key id next to it"
    }
  }
}
