import HoldfastCore

/// The vectors `RequestNumber`: whether a request's number is new to a device that accepted others with the same token.
///
/// Source: docs/protocol.md, Once is once.
struct RequestNumberVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let (number, expires) = (try test.node.member("number").number(), try test.node.member("expires").number())
    let clockFloor = try test.node.member("clockFloor").number()
    var record: RequestRecord?
    for node in try test.node.member("accepted").elements() {
      let accepted = try node.number()
      guard record?.covers(accepted, clockFloor: 0) != true else { throw node.fault(.wrongValue) }
      record =
        record?.accepting(accepted, digest: FixedBytes(), expires: expires)
        ?? RequestRecord(first: accepted, digest: FixedBytes(), expires: expires)
    }
    return record?.covers(number, clockFloor: clockFloor) == true ? .refused("a repetition") : .accepted
  }
}
