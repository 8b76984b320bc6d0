import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOnline

/// The carrier: a short-lived process that reads one task from its standard input, carries it out over the network, and writes
/// its reports to its standard output.
package enum Carrier {
  /// Carries out the task, and returns the exit status: 0 if a result was written.
  package static func run() -> Int32 {
    Thread.blockBrokenPipeSignal()
    guard ProcessHardening.apply() else { return report(.result(.failure(CarrierFailure(.fault)))) }
    guard let task = readTask(), let client = CurlClient(authorities: task.authorities) else {
      return report(.result(.failure(CarrierFailure(.fault))))
    }
    let network = Network(client)
    var exchange = Exchange(task, environment: network)
    return report(.result(exchange.run()))
  }

  /// Reads a line from standard input, or everything.
  private static func readTask() -> CarrierTask? {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while bytes.count <= CarrierTask.maximumByteCount {
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += chunk[..<count]
      if bytes.last == 0x0a { break }
    }
    return CarrierTask(bytes)
  }

  /// Writes a report. Returns 0, or 1 if the prover does not read it any more.
  @discardableResult
  fileprivate static func report(_ report: CarrierReport) -> Int32 {
    var rest = report.line[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return 1 }
      rest = rest.dropFirst(count)
    }
    return 0
  }
}

/// The real world around an exchange. It ends the process if the prover has gone.
private final class Network: ExchangeEnvironment {
  private var client: CurlClient

  init(_ client: consuming CurlClient) { self.client = client }

  func send(
    _ request: HTTPRequest, to service: PinnedService, withinMilliseconds milliseconds: UInt64
  ) throws(CarrierFailure.Kind) -> HTTPAnswer {
    try client.send(request, to: service, withinMilliseconds: milliseconds)
  }

  func monotonicMilliseconds() -> UInt64 { HoldfastLinux.monotonicMilliseconds() }

  func pause(milliseconds: UInt64) {
    let deadline = Deadline(afterMilliseconds: Int(clamping: milliseconds))
    // Ends early only if a signal interrupts it.
    while !deadline.hasPassed { _ = poll(nil, 0, CInt(clamping: deadline.remainingMilliseconds)) }
  }

  func random(upTo bound: UInt64) -> UInt64 { UInt64.random(in: 0...bound) }

  func report(_ progress: CarrierProgress) {
    if Carrier.report(.progress(progress)) != 0 { exit(1) }
  }
}
