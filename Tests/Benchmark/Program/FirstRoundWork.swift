import Glibc
import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// A first round with a whole token, both sides and their three messages over a pair of Unix sockets, in one thread.
final class FirstRoundWork {
  private typealias Prover = ProverSession<OpenSSLCryptography, TestRandom>

  private let token: [UInt8]
  private let keyID: KeyID
  private let device: RoundWork
  private let sockets: (prover: Int32, device: Int32)

  init(_ inputs: Inputs) throws {
    token = inputs.token
    var cryptography = OpenSSLCryptography()
    keyID = try HoldfastCore.keyID(of: Inputs.deviceKey().publicPoint, using: &cryptography)
    device = try RoundWork(inputs)
    var pair: [Int32] = [0, 0]
    guard unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0 else { throw RoundDenied() }
    sockets = (pair[0], pair[1])
  }

  func perform() throws -> Bool {
    let (token, claims) = (token, Inputs.claims)
    var prover = try Prover(
      identity: .init(
        deviceID: claims.audience, keyID: keyID, proofKey: secret(claims.proofKey), integrity: secret(claims.integrity),
        device: secret(claims.device)),
      request: Request(command: "unlock"), token: token.span, encoding: .cose, isRemembered: false,
      cryptography: OpenSSLCryptography(), random: TestRandom())
    let challenge = try move(device.challenged(), from: sockets.device, to: sockets.prover)
    guard case .send = try prover.receive(challenge.span) else { return false }
    let answer = try move(prover.outgoing.array, from: sockets.prover, to: sockets.device)
    let verdict = try move(device.answered(answer), from: sockets.device, to: sockets.prover)
    guard case .done(let outcome) = try prover.receive(verdict.span) else { return false }
    return outcome.status == .accepted
  }

  private func move(_ message: [UInt8], from sender: Int32, to receiver: Int32) throws -> [UInt8] {
    guard unsafe write(sender, message, message.count) == message.count else { throw RoundDenied() }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = unsafe read(receiver, &buffer, buffer.count)
    guard count > 0 else { throw RoundDenied() }
    return Array(buffer[..<count])
  }
}
