import Glibc
import HoldfastLinux
import Synchronization

import HoldfastTransport

/// The number of an adapter of this process: what reserves an instance of an adapter is visible in the whole machine.
///
/// - Parameter number: 0 to 14, and another one in each test.
func adapterOfTests(_ number: UInt16) -> UInt16 { UInt16(truncatingIfNeeded: getpid()) << 4 | number }

/// The kernel's end of a management socket, as a test wants it.
final class ManagementStandIn: Sendable {
  let management: ManagementSocket
  private let file: OpenFile

  init() throws {
    let (near, far) = try OpenFile.socketPair(framing: .packets)
    (management, file) = (ManagementSocket(file: near, answerMilliseconds: generousMilliseconds), far)
  }

  /// A command that was sent: code, adapter and parameters.
  struct Command: Equatable {
    let code: UInt16
    let adapter: UInt16
    let parameters: [UInt8]
  }

  /// Waits for the next command.
  func next() throws -> Command {
    var buffer = [UInt8](repeating: 0, count: 512)
    guard try file.wait(for: POLLIN, until: Deadline(afterMilliseconds: generousMilliseconds), unless: nil) == .ready
    else { throw TransportError.timedOutWaiting }
    let count = unsafe read(file.descriptor, &buffer, buffer.count)
    var reader = ByteReader(buffer[..<max(count, 0)])
    guard let code = reader.littleEndian(UInt16.self), let adapter = reader.littleEndian(UInt16.self),
      let length = reader.littleEndian(UInt16.self), reader.rest.count == Int(length)
    else { throw TransportError.closed }
    return Command(code: code, adapter: adapter, parameters: Array(reader.rest))
  }

  /// Waits for the next command, which has to be `code`, and answers it.
  @discardableResult
  func answer(_ code: ManagementCommand.Code, status: UInt8 = 0, _ result: [UInt8] = []) throws -> Command {
    let command = try next()
    guard command.code == code.rawValue else { throw BluetoothError.malformed }
    var parameters: [UInt8] = []
    parameters.append(littleEndian: command.code)
    // A command that failed has only its status.
    send(status == 0 ? 0x0001 : 0x0002, adapter: command.adapter, parameters + [status] + result)
    return command
  }

  /// Answers commands until one is `code`: that one well, and those before it with `status`, but for what only reads.
  @discardableResult
  func answer(
    _ code: ManagementCommand.Code, _ result: [UInt8] = [], refusing status: UInt8, features: [UInt8]
  ) throws -> Command {
    while true {
      let command = try next()
      var parameters: [UInt8] = []
      parameters.append(littleEndian: command.code)
      if command.code == code.rawValue {
        send(0x0001, adapter: command.adapter, parameters + [0] + result)
        return command
      }
      let isReading = command.code == ManagementCommand.Code.readAdvertisingFeatures.rawValue
      send(isReading ? 0x0001 : 0x0002, adapter: command.adapter, parameters + (isReading ? [0] + features : [status]))
    }
  }

  func send(_ event: UInt16, adapter: UInt16, _ parameters: [UInt8]) {
    var bytes: [UInt8] = []
    for number in [event, adapter, UInt16(parameters.count)] { bytes.append(littleEndian: number) }
    bytes += parameters
    // A kernel waits for nobody; a test's reports must all arrive.
    while unsafe write(file.descriptor, bytes, bytes.count) < 0 && errno == EAGAIN {
      let deadline = Deadline(afterMilliseconds: generousMilliseconds)
      guard (try? file.wait(for: POLLOUT, until: deadline, unless: nil)) == .ready else { return }
    }
  }
}
