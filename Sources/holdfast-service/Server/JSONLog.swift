#if Service
import Glibc
import HoldfastFormats
import Logging

/// A log of JSON objects, one a line, on standard error.
struct JSONLog: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = .info

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    write(event.level, "\(event.message)", event.metadata)
  }

  func log(
    level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String,
    function: String, line: UInt
  ) {
    write(level, "\(message)", metadata)
  }

  private func write(_ level: Logger.Level, _ message: String, _ more: Logger.Metadata?) {
    var now = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &now)
    let all = metadata.merging(more ?? [:]) { $1 }
    var members: [(String, JSONValue)] = [
      ("time", .string(Timestamp(unixSeconds: UInt64(now.tv_sec)).description)), ("level", .string(level.rawValue)),
      ("message", .string(message)),
    ]
    for (key, value) in all.sorted(by: { $0.key < $1.key }) {
      let name = key == "hb.request.id" ? "request_id" : key
      let text = "\(value)"
      members.append((name, UInt64(text).flatMap { $0 < 1 << 53 ? .integer($0) : nil } ?? .string(text)))
    }
    let line = JSONValue.object(members).compact() + [UInt8(ascii: "\n")]
    // One write per line, so that lines of several threads do not mix.
    _ = unsafe line.withUnsafeBytes { unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
#endif
