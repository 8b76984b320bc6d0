import Glibc
import HoldfastLinux
import HoldfastTransport
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

/// A TPM at a Unix-domain socket that gives the answers of a test, one for each command, and keeps the commands.
final class ScriptedTPM: Sendable {
  let path: String
  private let place: TemporaryFolder
  private let listener: Listener
  private let script: Script

  private final class Script: Sendable {
    let answers: Mutex<ArraySlice<[UInt8]>>
    let connections = Mutex<[[String]]>([])

    init(_ answers: [[UInt8]]) { self.answers = Mutex(answers[...]) }
  }

  /// - Parameter answers: The answers in hexadecimal digits, with spaces anywhere. After the last one, connections end.
  init(_ answers: [String]) throws {
    place = try TemporaryFolder()
    path = place.file("tpm")
    listener = try Listener(try Endpoint(parsing: "unix-stream:\(path)"))
    script = Script(answers.map { hex($0.filter { $0 != " " }) })
    let isStarted = Thread.detach { [listener, script] in
      while let connection = try? listener.accept() { Self.serve(connection, script) }
    }
    try #require(isStarted)
  }

  deinit { listener.close() }

  /// The commands of each connection in hexadecimal digits, in the order in which they came.
  var connections: [[String]] { script.connections.withLock { $0 } }

  /// The commands of all connections.
  var commands: [String] { connections.flatMap { $0 } }

  private static func serve(_ connection: Connection, _ script: Script) {
    let descriptor = connection.file.descriptor
    script.connections.withLock { $0.append([]) }
    while let head = read(10, of: descriptor) {
      let byteCount = head[2..<6].reduce(0) { $0 << 8 | Int($1) }
      guard byteCount >= 10, let rest = read(byteCount - 10, of: descriptor) else { return }
      script.connections.withLock { $0[$0.count - 1].append(hex(head + rest)) }
      guard let answer = script.answers.withLock({ $0.popFirst() }) else { return }
      // The end of an answer may come later than its beginning.
      for part in [answer.prefix(3), answer.dropFirst(3)].map({ Array($0) }) where !part.isEmpty {
        _ = unsafe send(descriptor, part, part.count, CInt(MSG_NOSIGNAL))
        usleep(2000)
      }
      if script.answers.withLock({ $0.isEmpty }) { return }
    }
  }

  private static func read(_ byteCount: Int, of descriptor: CInt) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < byteCount {
      var waited = pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0)
      guard unsafe poll(&waited, 1, CInt(TestPeer.patienceMilliseconds)) == 1 else { return nil }
      var part = [UInt8](repeating: 0, count: byteCount - bytes.count)
      let count = unsafe recv(descriptor, &part, part.count, 0)
      guard count > 0 else { return nil }
      bytes += part[..<count]
    }
    return bytes
  }
}
