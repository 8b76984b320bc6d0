import Glibc

extension Connection {
  /// What a wait for several connections waits for on one of them.
  public struct Watch {
    let connection: Connection
    let events: CInt

    /// Something to receive, the end of the connection included.
    public static func arrival(on connection: Connection) -> Watch { Watch(connection: connection, events: POLLIN) }

    /// The end of the connection alone, while what arrives is left for later.
    public static func end(of connection: Connection) -> Watch { Watch(connection: connection, events: 0) }

    /// The terminal, where the wait sees that it is silent.
    fileprivate var terminal: TerminalLine? { events == POLLIN ? connection.terminal : nil }

    /// When a silence that is waited for will be over.
    fileprivate var silence: Deadline { terminal?.silenceDeadline ?? .never }
  }

  /// Waits for the first of two things, or until one of the connections was shut down by ``shutdown()``.
  ///
  /// On a terminal that sent bytes that are no message, this is waiting for the silence too.
  ///
  /// - Returns: which of them happened; neither of them at `deadline`.
  /// - Throws: ``TransportError/other(errno:)``, where the system has no memory for it.
  public static func wait(
    for first: Watch, or second: Watch, until deadline: Deadline
  ) throws(TransportError) -> (first: Bool, second: Bool) {
    var entries: InlineArray<4, pollfd> = [
      first.connection.file.entry(for: first.events),
      first.connection.terminal?.wake.watched.entry(for: POLLIN) ?? none,
      second.connection.file.entry(for: second.events),
      second.connection.terminal?.wake.watched.entry(for: POLLIN) ?? none,
    ]
    repeat {
      if try poll(&entries, until: min(deadline, first.silence, second.silence)) { break }
      first.terminal?.endSilence()
      second.terminal?.endSilence()
    } while !deadline.hasPassed
    return (
      entries[0].revents | entries[1].revents != 0, entries[2].revents | entries[3].revents != 0
    )
  }

  /// poll(2) skips an entry with a negative descriptor.
  private static var none: pollfd { pollfd(fd: -1, events: 0, revents: 0) }
}

extension OpenFile {
  fileprivate func entry(for events: CInt) -> pollfd { pollfd(fd: descriptor, events: CShort(events), revents: 0) }
}
