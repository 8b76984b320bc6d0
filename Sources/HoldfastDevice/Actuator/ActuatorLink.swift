import Glibc
import HoldfastLinux
import HoldfastTransport

/// The reason that a message could not be sent to an external actuator, or received from it.
enum ActuatorLinkFault: Error, Equatable {
  /// The deadline has passed.
  case timedOut
  /// The actuator has closed its end.
  case ended
  /// The actuator sent something that is not a message.
  case badMessage(ActuatorMessageFault)
  /// The wait was interrupted by the wake-up.
  case woken
}

/// A link to an external actuator that is running: a child's pipes, or a socket. Only one thread uses it.
struct ActuatorLink: ~Copyable {
  /// The other end.
  private enum End: ~Copyable {
    case child(ChildProcess)
    case socket(OpenFile)
  }

  private let framing: ActuatorFraming
  private let end: End
  private var input: ActuatorInput

  /// Starts the program, or connects to the socket.
  init(to address: ActuatorAddress) throws(SystemError) {
    framing = address.framing
    input = ActuatorInput(framing: framing, maximumByteCount: address.coding.maximumByteCount)
    guard case .socket(let path) = address else {
      end = .child(try ChildProcess(path: address.path, environment: Self.environment()))
      return
    }
    let socket: OpenFile
    do throws(TransportError) { socket = try OpenFile.unixSocket(framing: .packets) } catch {
      throw SystemError(EMFILE)
    }
    let number = socket.connect(toPath: path)
    guard number == 0 else { throw SystemError(number) }
    end = .socket(socket)
  }

  /// The variables that a program gets: `PATH`, `LANG`, and those whose names begin with `HOLDFAST_`.
  private static func environment() -> [String] {
    var variables: [String] = []
    var entry = unsafe environ
    while let variable = unsafe entry.pointee {
      let text = unsafe String(cString: variable)
      if ["PATH=", "LANG=", "HOLDFAST_"].contains(where: text.hasPrefix) { variables.append(text) }
      unsafe entry += 1
    }
    return variables
  }

  /// Whether a message has begun that no call of ``receive(by:orWoken:)`` has returned.
  var hasBegunMessage: Bool { input.hasBegun }

  /// Sends a message.
  func send(_ message: [UInt8], by deadline: Deadline) throws(ActuatorLinkFault) {
    var rest = framing.frame(message)[...]
    while !rest.isEmpty {
      let written = unsafe rest.withUnsafeBytes { bytes in
        switch end {
        case .child(let child): unsafe write(child.input.number, bytes.baseAddress, bytes.count)
        case .socket(let socket): unsafe Glibc.send(socket.descriptor, bytes.baseAddress, bytes.count, flags)
        }
      }
      if written >= 0 {
        rest.removeFirst(written)
      } else if errno == EAGAIN {
        let descriptor =
          switch end {
          case .child(let child): child.input.number
          case .socket(let socket): socket.descriptor
          }
        try Self.wait(for: POLLOUT, of: descriptor, by: deadline, orWoken: nil)
      } else if errno != EINTR {
        throw .ended
      }
    }
  }

  /// Receives the next message.
  ///
  /// - Parameter wakeUp: interrupts the wait while its count is above zero; nil for none.
  mutating func receive(by deadline: Deadline, orWoken wakeUp: WakeUp? = nil) throws(ActuatorLinkFault) -> [UInt8] {
    while true {
      if let message = try nextMessage() { return message }
      // The deadline also applies to an actuator whose bytes never stop arriving.
      if deadline.hasPassed { throw .timedOut }
      try Self.wait(for: POLLIN, of: readEnd, by: deadline, orWoken: wakeUp)
      try read()
    }
  }

  /// Receives a message that has arrived already; nil if there is none.
  mutating func receiveArrived() throws(ActuatorLinkFault) -> [UInt8]? {
    while true {
      if let message = try nextMessage() { return message }
      do throws(ActuatorLinkFault) {
        try Self.wait(for: POLLIN, of: readEnd, by: Deadline(afterMilliseconds: 0), orWoken: nil)
      } catch .timedOut { return nil }
      try read()
    }
  }

  /// Kills the program, or closes the socket. Returns how the program ended.
  consuming func cut() -> ChildEnd? {
    switch consume end {
    case .child(let child): child.kill()
    case .socket: nil
    }
  }

  /// Asks the program to end, and kills it a second later; or closes the socket.
  consuming func close() {
    switch consume end {
    case .child(let child): _ = child.end(withinMilliseconds: 1000)
    case .socket: break
    }
  }

  private var readEnd: Int32 {
    switch end {
    case .child(let child): child.output.number
    case .socket(let socket): socket.descriptor
    }
  }

  private mutating func nextMessage() throws(ActuatorLinkFault) -> [UInt8]? {
    do throws(ActuatorMessageFault) { return try input.next() } catch { throw .badMessage(error) }
  }

  /// Reads what has arrived; of a socket, one packet.
  private mutating func read() throws(ActuatorLinkFault) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let descriptor = readEnd
    let count = unsafe buffer.withUnsafeMutableBytes {
      unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
    }
    if count > 0 { return input.append(buffer[..<count]) }
    if count == 0 || errno != EAGAIN && errno != EINTR { throw .ended }
  }

  private static func wait(
    for event: Int32, of descriptor: Int32, by deadline: Deadline, orWoken wakeUp: WakeUp?
  ) throws(ActuatorLinkFault) {
    while true {
      var waited: InlineArray<2, pollfd> = [
        pollfd(fd: descriptor, events: CShort(event), revents: 0),
        pollfd(fd: wakeUp?.descriptor ?? -1, events: CShort(POLLIN), revents: 0),
      ]
      var span = waited.mutableSpan
      let ready = unsafe span.withUnsafeMutableBufferPointer {
        unsafe poll($0.baseAddress, 2, CInt(clamping: deadline.remainingMilliseconds))
      }
      if waited[1].revents != 0 { throw .woken }
      if waited[0].revents != 0 { return }
      if ready == 0, deadline.hasPassed { throw .timedOut }
    }
  }
}

private let flags = Int32(MSG_NOSIGNAL)
