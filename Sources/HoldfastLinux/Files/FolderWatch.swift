import Glibc

/// A watch over folders: the kernel says when something in one of them has changed. Nothing polls, and no timer runs.
///
/// Source: inotify(7). A change tells only that there is something to look at, not what.
package struct FolderWatch: ~Copyable {
  private let descriptor: Descriptor

  private static let changes =
    UInt32(IN_CREATE) | UInt32(IN_DELETE) | UInt32(IN_MOVED_FROM) | UInt32(IN_MOVED_TO) | UInt32(IN_CLOSE_WRITE)
    | UInt32(IN_ATTRIB) | UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)

  /// Creates a watch over nothing.
  ///
  /// - Throws: `EMFILE` if this user has too many watches or descriptors.
  package init() throws(SystemError) {
    // The flags of inotify_init1(2) have the values of those of open(2).
    descriptor = try Descriptor(taking: inotify_init1(O_CLOEXEC | O_NONBLOCK))
  }

  /// Watches a folder, or the closest one above it that exists. Call it again after each change: the folder may be there by then.
  /// Watching twice is watching once.
  ///
  /// - Throws: `ENOSPC` if this user watches too much; `EACCES`.
  package func watch(_ path: String) throws(SystemError) {
    try Self.watchClosest(to: path.isEmpty ? "." : path) { (path) throws(SystemError) in
      if unsafe inotify_add_watch(descriptor.number, path, Self.changes) >= 0 { return true }
      guard errno == ENOENT || errno == ENOTDIR, path != "/", path != "." else { throw SystemError.last }
      return false
    }
  }

  /// Watches the closest folder to a path that exists, until no folder closer to it has been made meanwhile.
  ///
  /// - Parameter add: Watches a folder; returns false if it does not exist.
  package static func watchClosest(
    to path: String, _ add: (String) throws(SystemError) -> Bool
  ) throws(SystemError) {
    var last: String?
    while true {
      var closest = path
      while try !add(closest) { closest = folder(of: closest) }
      // What was missing below a folder that was watched already will be reported when it is made.
      if closest == path || closest == last { return }
      last = closest
    }
  }

  private static func folder(of path: String) -> String {
    var path = path
    while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Waits for a change; returns false if `stop` was raised.
  package func wait(until stop: WakeUp) -> Bool {
    var waited: InlineArray<2, pollfd> = [
      pollfd(fd: stop.descriptor, events: CShort(POLLIN), revents: 0),
      pollfd(fd: descriptor.number, events: CShort(POLLIN), revents: 0),
    ]
    while true {
      var span = waited.mutableSpan
      let ready = unsafe span.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, 2, -1) }
      if waited[0].revents != 0 { return false }
      if ready > 0 { break }
    }
    // The details of the events do not matter, nor whether the kernel had to leave some out.
    var events = [UInt8](repeating: 0, count: 4096)
    while unsafe read(descriptor.number, &events, events.count) > 0 {}
    return true
  }
}
