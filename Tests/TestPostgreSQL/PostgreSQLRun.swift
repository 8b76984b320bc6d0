import Foundation
import HoldfastLinux

/// The processes of a server, from its start to its end, and what they log.
package final class PostgreSQLRun: @unchecked Sendable {
  /// The ways to end a server.
  package enum End: Sendable {
    /// Transactions are rolled back, connections closed, and everything is written to the disk.
    case fast
    /// As fast, but the next start recovers from the log.
    case immediate
    /// All processes are killed.
    case killed
  }

  private let changed = NSCondition()
  private var processID: Int32?
  private var log: [String] = []
  private var hasEnded = false
  private var thread: HoldfastLinux.Thread?

  /// Starts the server.
  ///
  /// - Parameter arguments: The program, by its name or path, and its arguments.
  init(_ arguments: [String]) throws {
    // The kernel ends the server with the thread that started it, so this thread waits for its end.
    thread = try HoldfastLinux.Thread { [weak self] in self?.follow(arguments) }
  }

  private func follow(_ arguments: [String]) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    let output = Pipe()
    process.standardError = output
    process.standardOutput = output
    process.standardInput = FileHandle.nullDevice
    do { try process.run() } catch { return note("cannot start: \(error)", isLast: true) }
    update { self.processID = process.processIdentifier }
    var rest = ""
    while true {
      let data = output.fileHandleForReading.availableData
      // Every process of the server has the other end, so all of them have ended.
      if data.isEmpty { break }
      rest += String(decoding: data, as: UTF8.self)
      while let end = rest.firstIndex(of: "\n") {
        note(String(rest[..<end]))
        rest = String(rest[rest.index(after: end)...])
      }
    }
    process.waitUntilExit()
    note(rest, isLast: true)
  }

  private func note(_ line: String, isLast: Bool = false) {
    update {
      self.log.append(line)
      self.hasEnded = isLast
    }
  }

  private func update(_ change: () -> Void) {
    changed.lock()
    change()
    changed.broadcast()
    changed.unlock()
  }

  /// Waits until the log has a line that contains the text.
  func wait(for text: String) throws {
    let limit = Date(timeIntervalSinceNow: 60)
    changed.lock()
    defer { changed.unlock() }
    while !log.contains(where: { $0.contains(text) }) {
      guard !hasEnded, changed.wait(until: limit) else { throw ServerError(text: log.joined(separator: "\n")) }
    }
  }

  /// Sends a signal to all processes of the server.
  func signal(_ number: Int32) {
    guard let processID else { return }
    // The first process stands still, so that it starts no others.
    Glibc.kill(processID, SIGSTOP)
    for child in Self.children(of: processID) { Glibc.kill(child, number) }
    Glibc.kill(processID, number)
  }

  /// Ends the server and waits until all its processes have ended.
  func end(_ end: End) {
    guard let processID else { return }
    // One that a test has left suspended would never end.
    if end != .killed { signal(SIGCONT) }
    switch end {
    case .fast: Glibc.kill(processID, SIGINT)
    case .immediate: Glibc.kill(processID, SIGQUIT)
    case .killed: signal(SIGKILL)
    }
    changed.lock()
    while !hasEnded { changed.wait() }
    changed.unlock()
    thread?.join()
  }

  private static func children(of parent: Int32) -> [Int32] {
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
    return numbers.filter { number in
      // The name of the program is in parentheses; its state and its parent follow.
      let text = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8)
      return text?.split(separator: ")").last?.split(separator: " ").dropFirst().first == "\(parent)"
    }
  }
}
