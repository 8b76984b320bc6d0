import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The client of an agent. Each call makes a connection.
package struct AgentClient: Sendable {
  /// The path of the agent's socket.
  package let path: String
  private let timeoutMilliseconds: Int

  /// Names an agent. Nothing is connected yet.
  ///
  /// - Parameters:
  ///   - path: The path of its socket.
  ///   - timeoutMilliseconds: The longest wait for an answer.
  package init(path: String, timeoutMilliseconds: Int = 5000) {
    (self.path, self.timeoutMilliseconds) = (path, timeoutMilliseconds)
  }

  /// Has the agent hold a secret of 1 to 1024 bytes under a name, in place of an older one.
  ///
  /// - Parameter name: 1 to 64 bytes of printable ASCII without spaces.
  /// - Throws: ``AgentFault/full``, ``AgentFault/malformed``, ``AgentFault/connection(_:)``.
  package func hold(_ secret: borrowing SecretBytes, as name: String) throws(AgentFault) {
    var request = try request(.hold, name)
    request.append(secret.bytes)
    _ = try exchange(request)
  }

  /// Returns the secret that the agent holds under a name; nil if it holds none.
  package func secret(_ name: String) throws(AgentFault) -> SecretBytes? {
    do throws(AgentFault) { return try exchange(try request(.give, name)) } catch {
      guard error == .unknownName else { throw error }
      return nil
    }
  }

  /// Returns the names of everything that the agent holds.
  package func names() throws(AgentFault) -> [String] {
    let text = try exchange(try request(.list, ""))
    guard text.count > 0 else { return [] }
    return try String(decoding: [UInt8](text.bytes), as: UTF8.self).split(separator: "\n").map {
      name throws(AgentFault) in
      guard let name = AgentMessage.name(Array(name.utf8)) else { throw .malformed }
      return name
    }
  }

  /// Has the agent forget one secret, and returns whether it held it.
  @discardableResult
  package func forget(_ name: String) throws(AgentFault) -> Bool {
    do throws(AgentFault) { _ = try exchange(try request(.forget, name)) } catch {
      guard error == .unknownName else { throw error }
      return false
    }
    return true
  }

  /// Has the agent forget everything.
  package func forgetAll() throws(AgentFault) { _ = try exchange(try request(.forgetAll, "")) }

  private func request(_ operation: AgentMessage.Operation, _ name: String) throws(AgentFault) -> SecretBuffer {
    let bytes = Array(name.utf8)
    guard bytes.isEmpty || AgentMessage.name(bytes) != nil else { throw .malformed }
    var request = SecretBuffer(capacity: AgentMessage.largest)
    let head = [operation.rawValue, UInt8(bytes.count)] + bytes
    request.append(head.span)
    return request
  }

  private func exchange(_ request: borrowing SecretBuffer) throws(AgentFault) -> SecretBytes {
    guard request.count <= AgentMessage.largest else { throw .malformed }
    var answer = SecretBytes(zeros: AgentMessage.largest)
    let count: Int
    do throws(SystemError) { count = try exchange(request.bytes, &answer) } catch { throw .connection(error.number) }
    guard count >= 1, let status = AgentMessage.Status(rawValue: answer.bytes[0]) else { throw .malformed }
    switch status {
    case .done: return SecretBytes(copying: answer.bytes.extracting(1..<count))
    case .unknownName: throw .unknownName
    case .full: throw .full
    case .malformed: throw .malformed
    }
  }

  private func exchange(_ request: Span<UInt8>, _ answer: inout SecretBytes) throws(SystemError) -> Int {
    let socket = try AgentSocket(connectingTo: path)
    try retrying {
      unsafe request.withUnsafeBytes {
        unsafe send(socket.descriptor.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
      }
    }
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    var waited = pollfd(fd: socket.descriptor.number, events: Int16(POLLIN), revents: 0)
    while try retrying({ unsafe poll(&waited, 1, CInt(clamping: deadline.remainingMilliseconds)) }) == 0 {
      if deadline.hasPassed { throw SystemError(ETIMEDOUT) }
    }
    var room = answer.mutableBytes
    let count = try retrying {
      unsafe room.withUnsafeMutableBytes { unsafe recv(socket.descriptor.number, $0.baseAddress, $0.count, 0) }
    }
    guard count > 0 else { throw SystemError(ECONNRESET) }
    return count
  }
}

/// A reason why an agent did not do what it was asked.
package enum AgentFault: Error, Equatable, Sendable {
  /// The agent cannot be reached; the value is the `errno`.
  case connection(Int32)
  /// The agent holds nothing of this name.
  case unknownName
  /// The agent holds as many secrets as it can.
  case full
  /// The name or the secret has the wrong length, or the agent did not understand.
  case malformed
}
