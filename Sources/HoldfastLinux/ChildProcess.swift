import CHost
import Glibc

/// A program that this process has started, and the two pipes to it.
///
/// It is in a separate process group, has none of this process's descriptors except standard error, and only the given
/// environment. The kernel kills it when the thread that started it ends.
package struct ChildProcess: ~Copyable, Sendable {
  /// The write end of the pipe to its standard input. It does not block.
  package let input: Descriptor
  /// The read end of the pipe from its standard output. It does not block.
  package let output: Descriptor
  private let processID: pid_t

  /// Starts the program at `path`, without arguments.
  ///
  /// - Parameter environment: `NAME=VALUE` for each variable.
  /// - Throws: the `errno` of the step that failed, such as `ENOENT`, `EACCES` or `ENOEXEC` of execve(2).
  package init(path: String, environment: [String]) throws(SystemError) {
    guard !path.utf8.contains(0) else { throw SystemError(EINVAL) }
    let toChild = try Pipe()
    let fromChild = try Pipe()
    for end in [toChild.writeEnd.number, fromChild.readEnd.number] {
      try retrying { fcntl(end, F_SETFL, O_NONBLOCK) }
    }
    var variables = unsafe environment.map { unsafe strdup($0) } + [nil]
    defer { for index in environment.indices { unsafe free(variables[index]) } }
    processID = try retrying {
      unsafe path.withCString { path in
        unsafe variables.withUnsafeMutableBufferPointer { variables in
          unsafe holdfast_start_child(path, variables.baseAddress!, toChild.readEnd.number, fromChild.writeEnd.number)
        }
      }
    }
    input = toChild.writeEnd
    output = fromChild.readEnd
  }

  /// Kills the program and its process group, and waits for its end.
  package consuming func kill() -> ChildEnd {
    ChildEnd(holdfast_end_child(processID))
  }

  /// Asks the program to end by SIGTERM, waits at most that many milliseconds, and then kills what is left of its process
  /// group.
  package consuming func end(withinMilliseconds milliseconds: Int32) -> ChildEnd {
    _ = Glibc.kill(-processID, SIGTERM)
    // It may have left its group.
    _ = Glibc.kill(processID, SIGTERM)
    _ = holdfast_await_child(processID, milliseconds)
    return ChildEnd(holdfast_end_child(processID))
  }
}

/// A new pipe.
private struct Pipe: ~Copyable {
  let readEnd: Descriptor
  let writeEnd: Descriptor

  init() throws(SystemError) {
    var ends: InlineArray<2, Int32> = [-1, -1]
    var span = ends.mutableSpan
    // At once, so that no other thread starts a program in between that gets the ends.
    try retrying { unsafe span.withUnsafeMutableBufferPointer { unsafe holdfast_pipe($0.baseAddress!) } }
    let first = try Descriptor(taking: ends[0])
    let second = try Descriptor(taking: ends[1])
    readEnd = first
    writeEnd = second
  }
}

/// The way in which a program ended.
package enum ChildEnd: Sendable, Equatable {
  /// It ended by itself, with this exit status.
  case exited(Int32)
  /// This signal ended it.
  case signal(Int32)
  /// Other code in this process has waited for it.
  case unknown

  /// Decodes the status of waitpid(2); -1 is unknown.
  init(_ status: Int32) {
    let signal = status & 0x7f
    self = status == -1 ? .unknown : signal == 0 ? .exited(status >> 8 & 0xff) : .signal(signal)
  }
}

extension Thread {
  /// Blocks SIGPIPE in the calling thread, so that writing to a peer that has ended fails with `EPIPE`.
  package static func blockBrokenPipeSignal() { holdfast_block_broken_pipe() }

  /// Writes bytes as write(2) does, but a peer that has ended only gives `EPIPE`, and no signal reaches the process.
  package static func writeWithoutSignal(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Int {
    unsafe holdfast_write_without_signal(descriptor, bytes.baseAddress, bytes.count)
  }
}
