import Glibc
import HoldfastCore
import HoldfastTransport

/// One command at a time, each over a connection of its own: a socket serves one peer, and others wait.
enum TPM {
  /// The longest that a command may take, with its connection and all repetitions.
  static let timeoutMilliseconds = 5000

  /// Runs a command and returns the parameters of its response, of which there must be `byteCount` bytes.
  @discardableResult
  static func run(
    _ command: TPMCommand, authorization: Span<UInt8>, parameters: Span<UInt8>, at path: String,
    response byteCount: Int, timeoutMilliseconds: Int = timeoutMilliseconds
  ) throws(CounterFault) -> [UInt8] {
    var bytes = ByteBuffer<160>()
    do throws(EncodingFault) {
      try command.encode(authorization: authorization, parameters: parameters, into: &bytes)
    } catch { throw .malformed }
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    let connection = try TPMConnection(path: path, deadline: deadline)
    while true {
      switch try connection.exchange(bytes.bytes) {
      case .success(let parameters):
        guard parameters.count == byteCount else { throw .malformed }
        return parameters
      case .failure(let code):
        guard code.wantsRetry else { throw code.fault(isOwners: command.code.isOwners) }
        guard !deadline.hasPassed else { throw .silent }
        usleep(5000)
      }
    }
  }
}
