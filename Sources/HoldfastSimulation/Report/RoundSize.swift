import HoldfastCore

/// The sizes of a round's messages, by their real encoders. The simulation runs no rounds.
struct RoundSize {
  /// The bytes of M1, M2 with a reference to a remembered token and the command `unlock`, and M3 without a
  /// result, with the state of the list.
  let byteCount: Int

  /// The bytes that the state of the list takes in M3.
  static let stateByteCount = body(hasState: true).count - body(hasState: false).count

  init() {
    let (tag, unixMicroseconds): (Int, UInt64) = (16, 1_790_000_000_000_000)
    var (challenge, head, request, proof, verdict): ([UInt8], [UInt8], [UInt8], [UInt8], [UInt8]) = ([], [], [], [], [])
    Challenge(
      deviceID: DeviceID(), nonce: Nonce(), keyID: KeyID(), required: .device, clock: SimulatedService.beginning
    ).encode(into: &challenge)
    ProofMessageHead.encode(
      random: FixedBytes(), encoding: .reference, token: TokenReference().bytes, into: &head)
    var unlock = Request(command: BoundedText("unlock"))
    unlock.number = unixMicroseconds
    unlock.encode(into: &request)
    let sealed = [UInt8](repeating: 0, count: request.count + tag)
    ProofMessage.encode(
      head: head.span, integrityProof: MAC(), deviceProof: MAC(), sealed: sealed.span, into: &proof)
    let reply = [UInt8](repeating: 0, count: Self.body(hasState: true).count + tag)
    VerdictMessage.encode(.accepted, sealed: reply.span, into: &verdict)
    byteCount = challenge.count + proof.count + verdict.count
  }

  private static func body(hasState: Bool) -> [UInt8] {
    var notice = Notice()
    if hasState { notice.bulletinState = BulletinState() }
    var bytes: [UInt8] = []
    VerdictBody(notice: notice).encode(into: &bytes)
    return bytes
  }
}
